"""Splitting of code: before declarations, by structure alone, in several languages."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.text import count_tokens, split
from fabula.text._code import quoted
from tests.text.samples import CODE
from tests.text.test_split import check

PYTHON = '''# Tides of harbour {0}.
@cached
def tide_{0}(hours):
    """Height of the water.

Old charts say otherwise.

    """
    table = [
        hours * {0},

        hours + {0},
    ]

    if not table:

        return None
    return max(table)


'''
PYTHON_CLASS = """class Tide{0}(
    Water,
):
    mean = {0}

    @property
    def height(self):
        low = self.mean

        return low

    # Never below the floor.
    def floor(self):
        deep = self.height

        return deep - {0}


"""
JAVASCRIPT = """/**
 * Tides of harbour {0}.
 */
export class Tide{0} extends Water {{
  constructor(mean) {{
    super();

    this.mean = mean;
  }}

  height(hour) {{
    const swing = `
low

high`;

    return this.mean + swing;
  }}
}}

"""
C = """/* Tides of harbour {0}. */
static int
tide_{0}(int hour,
         int swing)
{{
    int low = hour * {0};

    if (low < swing) {{

        low = swing;
    }}

    return low;
}}

"""
JAVA = """/**
 * Tides of harbour {0}.
 */
@Component
public class Tide{0}
{{
    private int mean = {0};

    @Override
    public int height(int hour)
    {{
        int low = hour;

        return low + mean;
    }}
}}

"""
GO = """// Tide{0} is the tide of a harbour.
type Tide{0} struct {{
\tMean int

\tSwing int
}}

// Height is the height of the water.
func (t Tide{0}) Height(hour int) int {{
\tlow := hour * t.Mean

\treturn low + t.Swing
}}

"""
RUBY = """# Tides of harbour {0}.
class Tide{0} < Water
  attr_reader :mean

  # Height of the water.
  def height(hour)
    low = hour * mean

    low + {0}
  end
end

"""
YAML = """# Tides of harbour {0}.
harbour_{0}:
  mean: {0}
  hours:
    - low: 1
      high: 7

    - low: 13
      high: 19
  note: |
    It's deep.

    And cold.
"""
JSON = """  "harbour{0}": {{
    "mean": {0},
    "hours": [
      {{ "low": 1, "high": 7 }},
      {{ "low": 13, "high": 19 }}
    ]
  }},
"""
TOML = """[harbour_{0}]
mean = {0}
hours = [1, 7]

high = 3

"""
STARTS = {
    "python": (PYTHON, r"# Tides"),
    "python class": (PYTHON_CLASS, r"class|    @property|    # Never"),
    "javascript": (JAVASCRIPT, r"/\*\*|  height|  constructor"),
    "c": (C, r"/\* Tides"),
    "java": (JAVA, r"/\*\*|    @Override|    private"),
    "go": (GO, r"// (Tide|Height)"),
    "ruby": (RUBY, r"# Tides|  # Height|  attr_reader"),
    "yaml": (YAML, r"# Tides"),
    "json": ("{{\n" + JSON, r'  "harbour|\{'),
    "toml": (TOML, r"\[harbour"),
}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("language", STARTS)
def test_chunks_start_with_declarations(language: str, newline: str) -> None:
    shape, start = STARTS[language]
    text = "".join(shape.format(i) for i in range(10, 34))
    if language == "json":
        text = "{\n" + text.replace("{\n  ", "  ") + "}\n"
    text = text.replace("\n", newline)
    budget = int(2.6 * count_tokens(shape.format(10)))
    spans = split(text, budget, kind="code")
    check(text, spans, budget)
    starts = [text[span.start : span.end].lstrip("\r\n").splitlines()[0] for span in spans]
    assert len(starts) >= 8
    assert [line for line in starts if not re.match(start, line)] == []


def test_members_are_better_than_statements() -> None:
    spans = split(CODE, 110, kind="code")
    check(CODE, spans, 110)
    starts = [CODE[span.start : span.end].lstrip("\n").split("\n")[0] for span in spans]
    assert all(start.startswith(('"""', "class", "@", "def", "    def")) for start in starts), starts


def test_rows_of_a_table_stay_whole() -> None:
    rows = "".join(f"    {{'name': 'harbour {i}',\n     'mean': {i},\n     'swing': {i * 3}}},\n" for i in range(60))
    text = f"TABLE = [\n{rows}]\n"
    starts = [text[span.start :].split("\n")[0] for span in split(text, 150, kind="code")[1:]]
    assert all(start.startswith("    {'name'") for start in starts), starts


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ('a = """one\n\ntwo"""\nb', ['"""one\n\ntwo"""']),
        ("a = '\"\"\"'\nb = 1\nc = \"'''\"\n", []),
        ('x = 1  # it\'s a """ here\ny = 2\n', []),
        ("/* one\n two */ int a; /* three */\n", ["/* one\n two */"]),
        ("s = `a\nb`;\nt = `c`;", ["`a\nb`"]),
        ('"never closed\nnext "line"\n', []),
        ('""" never closed\n', []),
        ('a """\ndef f(x):\n    return 1\n\nb = """text\nmore"""\n', ['"""text\nmore"""']),
        ('u = "/*"\nv = 1\nw = "*/"\n', []),
        ("# it's\nr = '''\nraw\n'''", ["'''\nraw\n'''"]),
        ('a = "b\\\\"\n"""c\nd"""', ['"""c\nd"""']),
    ],
)
def test_strings_over_several_lines(text: str, inside: list[str]) -> None:
    assert [text[start:end] for start, end in quoted(text)] == inside


LINES = st.sampled_from(
    [
        "def f():\n",
        "    def g(self):\n",
        "class A:\n",
        "    x = 1\n",
        '"""',
        "'''\n",
        "/*",
        "*/\n",
        "`",
        "# it's\n",
        "@d\n",
        "}\n",
        "{\n",
        "(a,\n",
        ")\n",
        "\n",
        "\treturn x\n",
        "key: value\n",
        "- item\n",
        "[section]\n",
        "\\",
        "x" * 300,
        ";",
        "}" * 20,
        "a;" * 100,
        "\r\n",
        '"a" "b\n',
        "end\n",
        "\x0c\n",
    ]
)


@given(st.lists(LINES, max_size=60).map("".join), st.integers(16, 80), st.booleans())
def test_lossless_whatever_the_code(text: str, budget: int, stable: bool) -> None:
    check(text, split(text, budget, kind="code", stable=stable), budget)
    ends = [0, *(end for pair in quoted(text) for end in pair)]
    assert ends == sorted(ends)
    assert ends[-1] <= len(text)
