"""Where source code may be cut, without a parser: by indentation, blank lines, and the words that begin a declaration.

Made for what is written with indentation in lines of a sane length: Python, JavaScript, TypeScript, C, C++, C#, Java, Kotlin, Go, Rust,
Swift, Ruby, PHP, shell, SQL, YAML, JSON, TOML. A line's rank is known from the lines above that are indented less: below a class it
is a member, below a function a statement.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fabula.text._chars import inside_word, lazily
from fabula.text._prose import BEFORE, CLAUSE, WORD, Cuts, inside_long_word, weighs

_MEMBER, _MEMBER_DEPTH, _MEMBER_BLANK, _DECLARED = 3.0, 0.3, 2.0, 0.5
_ENTRY_BLANK, _DEDENT, _MOST = 0.5, 0.5, 5.0
_STATEMENT, _STATEMENT_DEPTH, _STATEMENT_BLANK = 0.9, 0.2, 0.6
_ROW, _ROW_DEPTH, _DEEP_ROW = 0.3, 0.5, -0.95
_CLOSER, _QUOTED, _QUOTED_BLANK = -0.5, -0.7, 0.5

_LONGEST_QUOTE = 30_000
"""Characters: what seems to be a longer string or comment is a mistake of ours."""

_MODIFIERS = (
    r"(?:(?:export|default|public|private|protected|internal|static|final|abstract|sealed|partial|open|data|inner|unsafe|typedef|declare"
    r"|inline|virtual|override|readonly|extern|pub(?:\([^)]*\))?|template\s*<[^>]*>)\s+)*"
)
_HOLDS = lazily(
    rf"{_MODIFIERS}(?:"
    r"(?:class|interface|trait|impl|namespace|module|package|object|protocol|extension|record|mod|service|message|contract|library"
    r"|companion\s+object|annotation|@interface)(?:\s+[\w\"$@<({]|<|\s*\{|\s*$)"
    r"|(?:struct|enum|union)\b(?![^{]*\()|type\s+\w+(?:\[[^\]]*\])?\s*(?:struct|interface|=\s*\{)|extern\s+\"C\")"
    r"|(?:public|private|protected|signals|[\w ]*slots)\s*:|module\.exports\s*=\s*\{|export\s+default\s+\{"
    r"|(?:describe|context|suite)(?:\(|\s+['\":A-Z])|[;!(]*(?:async\s+)?(?:function\s*\(|\(\)\s*=>)|define\("
)
_HOLDS_ENTRIES = lazily(r"(?:-\s+)*(?:\"[^\"]*\"|'[^']*'|[\w./-][\w./ -]*)\s*:\s*(?:[{\[]|[|>&!][\w+-]*)?\s*$|[{\[]$|-\s")
_HOLDS_NOT = lazily(r"(?:else|try|finally|default|case|do|except|if|for|while|with|lambda|switch|when|loop)\b|[^:]*\)\s*:\s*$")
_DECLARES = lazily(
    rf"@\w|\[+[\w.\"' -]+\]+\s*$|#\[|{_MODIFIERS}(?:async\s+)?(?:class|struct|enum|interface|trait|impl|namespace|module|object|type"
    r"|union|record|function|fn|func|fun|def|sub|proc|describe|test|it)\b\s*[\w\"'$<(*]"
    r"|(?:public|private|protected|internal|static|export|pub)\s|const\s+\w+\s*=\s*(?:async\s*)?(?:\(|function)|(?:create|CREATE)\s"
)
_COMMENT = lazily(r"#(?!\s*(?:include|define|if|ifdef|ifndef|el|endif|undef|pragma|error)\b|\[)|//|--\s|/\*|\*(?:\s|/|$)|;;|<!--")
_STICKS = lazily(r"@[\w.]+(?:\(.*\))?\s*$|\[+[\w.\"' -]+(?:\(.*\))?\]+\s*$|#!?\[.*\]\s*$|template\s*<.*>\s*$")
_CONTINUES = lazily(
    r"[)\]}]|(?:else|elif|elsif|except|catch|finally|rescue|ensure|and|or|end|then|fi|done|esac)\b|&&|\|\||[.?]\w|[?:+]\s|->|=>|\"\"\"|'''"
)
_OPEN_ENDS = ("(", "[", "{", "\\", "=", "&&", "||", "+", " and", " or", "->", "=>")
_CLOSED_ENDS = (";", "}", "{", ":", ",", ">", "*/")
_TOKEN = lazily(r"\"\"\"|'''|/\*|\"(?:[^\"\\\n]|\\.)*+\"?|'(?:[^'\\\n]|\\.)*+'?|(?:#|//)[^\n]*+|`")
_LEFT = lazily(r"\n(?:def|class|import|from|func|function|public|private|static|#include|package|impl|fn|pub)\s[^\n]*[:;{(\w]\n")
"""What does not stand at the left edge inside a string, as a rule."""

_CLOSE = {'"""': '"""', "'''": "'''", "/*": "*/", "`": "`"}
_BITS = lazily(r"[;}]+(?![)}\];,.])\s*")
_SMALL_BITS = lazily(r"[,;)}\]>|&]+\s*|\s+")


def quoted(text: str) -> Iterator[tuple[int, int]]:
    """The strings and comments that run over several lines, in order. Linear, whatever the text."""
    position, found = 0, dict.fromkeys(_CLOSE, -1)
    never, left = len(text) + _LONGEST_QUOTE + 1, -1
    while match := _TOKEN().search(text, position):
        position = match.end()
        opener = match.group()
        close = _CLOSE.get(opener)
        if close is None:
            continue
        at = found[opener]
        if at < position:
            at = text.find(close, position)
            found[opener] = at = at if at >= 0 else never
        if at - position > _LONGEST_QUOTE:
            continue
        if not position <= left < at:
            torn = _LEFT().search(text, position, at)
            left = torn.start() if torn else -1
        if left >= 0:
            continue  # it was the end of one
        if text.find("\n", position, at) >= 0:
            yield match.start(), at + len(close)
        position = at + len(close)


def _held(head: str) -> str:
    """What is below a line: `members` of a class and the like, `entries` of data, or neither."""
    return "members" if _HOLDS().match(head) else "entries" if _HOLDS_ENTRIES().match(head) else ""


@dataclass(slots=True)
class _Line:
    """A line that may have lines below it which are indented more."""

    indent: int
    head: str
    """What says what it holds: itself, or the line that began what it ends or opens."""
    member: bool
    entry: bool
    """A member of a class or of data; of data."""
    holds: str | None = None
    """As `_held` says; worked out when there is something below."""


class Code:
    """Cuts of one source file, block by block from its beginning.

    A line of more than `most` bytes has cuts inside, `big` characters apart at most.
    """

    def __init__(self, text: str, most: int, big: int) -> None:
        self.text, self.most, self.big = text, most, big
        self.quotes = quoted(text)
        self.nowhere = (len(text), len(text))
        self.quote = next(self.quotes, self.nowhere)
        start = text[:20_000]
        self.semicolons = start.count(";\n") + start.count(";\r") > start.count("\n") / 8
        self.blank = True
        self.above = ""  # the last line with something on it
        self.depth = 0
        self.sticky = False  # whether that line belongs to what follows it
        self.parents: list[_Line] = []

    def block(self, start: int, stop: int) -> Cuts:
        """Cuts before and inside the lines from `start` to `stop`, which end at line breaks."""
        cuts = Cuts()
        at = start
        for line in self.text[start:stop].splitlines(keepends=True):
            cuts.add(at, self._score(at, line if len(line) < 400 else line[:400]))
            if len(line) > self.big and weighs(line, self.most):
                inside_code_line(self.text, at, at + len(line), self.big, cuts)
            at += len(line)
        return cuts

    def _score(self, at: int, line: str) -> float:
        """How good the place before a line is; remembers the line."""
        body = line.strip()
        if not body:
            self.blank = True
            return BEFORE
        while self.quote[1] <= at:
            self.quote = next(self.quotes, self.nowhere)
        if self.quote[0] < at:
            score = _QUOTED + (_QUOTED_BLANK if self.blank else 0)
            self.blank = body in ("*", "//", "#")
            return score
        wide = line.expandtabs(4) if "\t" in line else line
        line_is = self._place(len(wide) - len(wide.lstrip()), body)
        depth = len(self.parents) - 1
        if _CONTINUES().match(body):
            score = _CLOSER
        elif self._follows_on(body):
            score = BEFORE
        elif line_is.member:
            score = _MEMBER - _MEMBER_DEPTH * min(depth, 4) + _DEDENT * min(self.depth - depth, 3) * (self.depth > depth)
            if self.blank:
                score += _ENTRY_BLANK if line_is.entry else _MEMBER_BLANK
            score = min(score, _MOST)
            if _DECLARES().match(body) or (self.blank and _COMMENT().match(body)):
                score += _DECLARED
        elif self.above.endswith(","):
            score = max(_DEEP_ROW, _ROW - _ROW_DEPTH * depth)
        else:
            score = _STATEMENT - _STATEMENT_DEPTH * min(depth, 6) + (_STATEMENT_BLANK if self.blank else 0)
            if _DECLARES().match(body):
                score += _DECLARED
        self.sticky = bool(_COMMENT().match(body) or _STICKS().match(body)) or (body[0] in ")]}" and line_is.head.startswith("@"))
        self.above, self.blank, self.depth = body, False, depth
        return score

    def _place(self, indent: int, body: str) -> _Line:
        """The line among those above, now the last of `parents`."""
        parents, same = self.parents, ""
        while parents and parents[-1].indent >= indent:
            same = parents.pop().head
        member = entry = False
        if parents:
            parent = parents[-1]
            if parent.holds is None:
                parent.holds = "" if not parent.member or _HOLDS_NOT().match(parent.head) else _held(parent.head)
            member, entry = bool(parent.holds), parent.holds == "entries"
        else:
            member = True
        if body == "{":
            head = self.above or body
        else:
            head = same if same and body[0] in ")]}" else body
        parents.append(_Line(indent, head, member, entry))
        return parents[-1]

    def _follows_on(self, body: str) -> bool:
        """Whether a line belongs to the one above: a decorator, a comment, a bracket left open, an unfinished statement."""
        above = self.above
        if self.blank:
            return self.sticky and above[:1] == "@"
        if self.sticky or above.endswith(_OPEN_ENDS):
            return True
        if body == "{" and not above.endswith(","):
            return True
        return self.semicolons and bool(above) and not above.endswith(_CLOSED_ENDS) and above[0] != "#"


def inside_code_line(text: str, start: int, end: int, big: int, cuts: Cuts) -> None:
    """Cuts inside a long line, such as a script without line breaks: after statements, and inside long ones."""
    last = start
    for match in _BITS().finditer(text, start, end):
        at = match.end()
        if at - last < 16 or at >= end or inside_word(text, at):
            continue
        if at - last > big:
            _inside_statement(text, last, at, big, cuts)
        cuts.add(at, CLAUSE - 2)
        last = at
    if end - last > big:
        _inside_statement(text, last, end, big, cuts)


def _inside_statement(text: str, start: int, end: int, big: int, cuts: Cuts) -> None:
    last = start
    for match in _SMALL_BITS().finditer(text, start, end):
        at = match.end()
        if at - last < 16 or at >= end or inside_word(text, at):
            continue
        inside_long_word(text, last, at, big, cuts)
        cuts.add(at, WORD - 2)
        last = at
    inside_long_word(text, last, end, big, cuts)
