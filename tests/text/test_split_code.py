"""Splitting of code: before declarations, by structure alone, in several languages."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.text import count_tokens, split
from fabula.text._code import Code, quoted
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


def scores(text: str) -> dict[str, float]:
    """How good the place before each line is, by the line without its white space."""
    cuts = Code(text, 10_000, 1_000).block(0, len(text))
    return dict(zip((line.strip() for line in text.splitlines()), cuts.scores, strict=True))


def test_what_stands_above_a_declaration_belongs_to_it() -> None:
    found = scores("x = 1\n# why\n# and how\n@first\n@second(\n    1,\n)\ndef f():\n    pass\n")
    assert found["# why"] > 2
    assert max(found[line] for line in ("# and how", "@first", "@second(", "1,", ")", "def f():")) < 0
    text = "".join(f"# Why {i}.\ndef f{i}():\n    return {i}\n" for i in range(60))
    assert all(text.startswith("# Why", span.start) for span in split(text, 100, kind="code"))


def test_inside_a_string_nothing_is_a_declaration() -> None:
    found = scores('class A:\n    """One.\n\nTwo.\n\nthree = 3\n    """\n\n    def f(self):\n        pass\n')
    assert max(found["Two."], found["three = 3"], found['"""']) < 0
    assert found["def f(self):"] > 4
    found = scores("/**\n * One.\n *\n * Two.\n */\nint f(void);\n")
    assert 0 > found["* Two."] > found["*"]


def test_statements_of_functions_are_no_members() -> None:
    allman = scores("int f(int a)\n{\n    int low = a;\n\n    low = 2;\n    return low;\n}\n")
    assert max(allman["low = 2;"], allman["return low;"]) < 2
    nested = scores("def f():\n    class A:\n        def g(self):\n            pass\n\n        def h(self):\n            pass\n")
    assert nested["def h(self):"] < 2
    assert scores("class A:\n    def g(self):\n        pass\n\n    def h(self):\n        pass\n")["def h(self):"] > 4
    member = scores("class A\n{\npublic:\n    int g();\n\n    int h();\n};\n")
    assert member["int h();"] > 4


def test_a_declaration_over_several_lines_stays_whole() -> None:
    found = scores("int a;\nint b;\n\nstatic int\nf(int low,\n  int high)\n{\n    return low;\n}\n")
    assert found["static int"] > 4
    assert max(found["f(int low,"], found["int high)"], found["{"]) < 0


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
