# ruff: noqa: S608 (SQL is put together from names of our own)
"""Look for damage in a library and mend what can be mended.

`check` reads only. `repair` works inside one transaction after a copy of the file was made; it never invents content: what is
lost is said to be lost.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from fabula.errors import LibraryDamaged
from fabula.store._codec import pack, unpack, unpack_json
from fabula.store._database import Database
from fabula.store._lines import tokens
from fabula.store._locks import Locks
from fabula.store._rows import LIBRARY, CallRow, Finding, RunRow, StepRow
from fabula.store._schema import FIND, SHIFT, TABLES, Table

LOST = "⟨lost⟩"
_SHOWN = 5
_MANY = 10_000
"""Missing positions for which log rows are put in."""
_UNREADABLE = (ValueError, TypeError, KeyError, IndexError)
_RUNS = "SELECT id FROM runs"
_OPEN = "('asked', 'partial')"
"""Status of call rows that settle nothing."""


@dataclass(frozen=True, slots=True)
class _Ill:
    """A finding and how it is mended; the act returns what it did."""

    finding: Finding
    mend: Callable[[], str] | None = None


def check(database: Database, locks: Locks) -> list[Finding]:
    """All findings. Reads only."""
    return [ill.finding for ill in _examine(database, locks)]


def repair(database: Database, locks: Locks) -> list[Finding]:
    """Mend. Call inside a transaction, after a copy was made. Raises LibraryDamaged where pages are damaged beyond the indexes."""
    out = []
    for ill in _examine(database, locks):
        done = ill.mend() if ill.mend else "Nothing can be done: what is missing is nowhere else in the library."
        out.append(replace(ill.finding, repaired=done))
    return out


def pages(database: Database) -> list[str]:
    """What SQLite says about the file's pages and indexes; empty = sound."""
    try:
        said = [str(row[0]) for row in database.all("PRAGMA integrity_check(50)")]
    except LibraryDamaged as error:
        return [error.message]
    return [] if said == ["ok"] else said


def _examine(database: Database, locks: Locks) -> Iterator[_Ill]:
    said = pages(database)
    if said:
        yield _Ill(
            Finding("damaged_pages", f"SQLite finds damage in {database.place}: {'; '.join(said[:_SHOWN])}."), lambda: _reindexed(database)
        )
    for act in (_unreadable, _positions, _counts, _runs, _calls, _steps, _messages, _vectors, _index, _totals):
        try:
            yield from act(database)
        except LibraryDamaged as error:
            yield _Ill(
                Finding("damaged_pages", f"While looking at {act.__name__.strip('_')}: {error.message}"),
                lambda: _reindexed(database, beyond=True),
            )
    left = locks.leftover()
    if left:
        names = ", ".join(path.name for path in left[:_SHOWN])
        yield _Ill(
            Finding("leftover_locks", f"{len(left)} lock files of processes that were killed: {names}. Harmless.", serious=False),
            lambda: f"Removed {len(locks.sweep())}.",
        )


def _reindexed(database: Database, *, beyond: bool = False) -> str:
    database.do("REINDEX")
    said = pages(database)
    if beyond or said:
        raise LibraryDamaged(
            f"Damage remains after the indexes of {database.place} were built anew: {(said or ['rows cannot be read'])[0]}."
        )
    return "The indexes were built anew; all pages are sound now."


def _some(values: list[int]) -> str:
    return ", ".join(map(str, values[:_SHOWN])) + (" …" if len(values) > _SHOWN else "")


# -- rows ------------------------------------------------------------------------------------------------------------------


def _unreadable(database: Database) -> Iterator[_Ill]:
    """Rows whose columns cannot be decoded."""
    for table in TABLES.values():
        bad = []
        for columns in database.stream(table.select):
            try:
                table.decoded(columns)
                if table.kind is CallRow and columns[_PROMPT]:
                    [(str(role), int(text)) for role, text in unpack_json(columns[_PROMPT])]
            except _UNREADABLE:
                bad.append(columns[0])
        if bad:
            yield _Ill(
                Finding(
                    "unreadable_rows", f"{len(bad)} rows of {table.name} cannot be read (positions {_some([n >> SHIFT for n in bad])})."
                ),
                _dropper(database, table, bad),
            )
    bad = []
    for key, body in database.stream("SELECT id, body FROM texts"):
        try:
            unpack(body)
        except _UNREADABLE:
            bad.append(key)
    if bad:
        yield _Ill(
            Finding("unreadable_texts", f"{len(bad)} messages of prompts or source texts cannot be read."),
            lambda: _each(
                database,
                "UPDATE texts SET hash = NULL, body = ? WHERE id = ?",
                [(pack(LOST), key) for key in bad],
                f"They read {LOST} now.",
            ),
        )


_PROMPT = TABLES[CallRow].columns.index("prompt") + 1


def _dropper(database: Database, table: Table, bad: list[int]) -> Callable[[], str]:
    def act() -> str:
        for n in bad:
            database.do(f"DELETE FROM {table.name} WHERE n = ?", (n,))
            database.do("UPDATE log SET count = count - 1 WHERE n = ? AND count > 0", (n >> SHIFT << SHIFT,))
        return "The rows were taken out; they are still in the copy."

    return act


def _each(database: Database, sql: str, values: list[tuple[object, ...]], done: str) -> str:
    for one in values:
        database.do(sql, one)
    return done


def _positions(database: Database) -> Iterator[_Ill]:
    """The spine: every row has its log row, no position is missing, the counter stands at the last."""
    for table in TABLES.values():
        if table.name == "log":
            continue
        sql = (
            f"SELECT DISTINCT n >> {SHIFT} FROM {table.name} t"
            f" WHERE NOT EXISTS (SELECT 1 FROM log WHERE log.n = (t.n >> {SHIFT}) << {SHIFT})"
        )
        bare = [row[0] for row in database.all(sql)]
        if bare:
            yield _Ill(
                Finding("missing_log", f"Rows of {table.name} name positions without a log row: {_some(bare)}."), _logger(database, bare)
            )
    last = max((found[0] or 0) >> SHIFT for table in TABLES.values() if (found := database.one(f"SELECT max(n) FROM {table.name}")))
    counter = database.one("SELECT value FROM counter WHERE name = 'position'")
    gaps = database.all(
        f"SELECT before + 1, pos - 1 FROM (SELECT n >> {SHIFT} AS pos, lag(n >> {SHIFT}, 1, 0) OVER (ORDER BY n) AS before FROM log)"
        " WHERE pos > before + 1"
    )
    if gaps:
        missing = sum(end - start + 1 for start, end in gaps)
        where = ", ".join(f"{start}" if start == end else f"{start} to {end}" for start, end in gaps[:_SHOWN])
        holes = [pos for start, end in gaps for pos in range(start, end + 1)] if missing <= _MANY else []
        yield _Ill(Finding("gap", f"{missing} transactions are missing: position {where}."), _logger(database, holes) if holes else None)
    stands = int(counter[0]) if counter else 0
    if counter is None or stands != last:
        lost = list(range(last + 1, stands + 1)) if stands - last <= _MANY else []

        def act() -> str:
            database.do("INSERT OR REPLACE INTO counter VALUES ('position', ?)", (lost[-1] if lost else last,))
            return "It was set right. " + (_logged(database, lost) if lost else "")

        yield _Ill(Finding("counter", f"The counter of positions stands at {stands}, the last transaction is {last}."), act)


def _logger(database: Database, bare: list[int]) -> Callable[[], str]:
    return lambda: _logged(database, bare)


def _logged(database: Database, bare: list[int]) -> str:
    for pos in bare:
        database.do("INSERT OR IGNORE INTO log(n, run, kind, wall) VALUES (?, ?, 'lost', 0)", (pos << SHIFT, LIBRARY))
    return "Log rows of the kind `lost` stand in their places."


_PRESENT = " UNION ALL ".join(
    f"SELECT n >> {SHIFT} AS pos FROM {table.name}" for table in TABLES.values() if table.name not in ("log", "vectors")
)
MISSED = (
    f"SELECT log.n, log.count, count(found.pos) AS there FROM log LEFT JOIN ({_PRESENT}) found ON found.pos = log.n >> {SHIFT}"
    " WHERE log.count >= 0 GROUP BY log.n HAVING there <> log.count"
)
"""Transactions of which rows are missing: (key, rows that were written, rows that are there)."""


def _counts(database: Database) -> Iterator[_Ill]:
    """Every row that a transaction wrote is there."""
    wrong = database.all(MISSED)
    if wrong:
        lost = sum(max(0, count - there) for _, count, there in wrong)
        yield _Ill(
            Finding(
                "lost_rows",
                f"{lost} rows of {len(wrong)} transactions are missing (positions {_some([row[0] >> SHIFT for row in wrong])}).",
            ),
            lambda: _each(
                database,
                "UPDATE log SET count = ? WHERE n = ?",
                [(there, n) for n, _, there in wrong],
                "They are lost, unless a backup has them; this is said once.",
            ),
        )


def _runs(database: Database) -> Iterator[_Ill]:
    """Rows of runs that are not there, and forks of such."""
    missing: set[str] = {row[0] for row in database.all(f"SELECT parent FROM runs WHERE parent IS NOT NULL AND parent NOT IN ({_RUNS})")}
    for name in ("lanes", "begun", "steps", "calls", "recalls", "pieces", "intakes", "records"):
        missing |= {row[0] for row in database.all(f"SELECT DISTINCT run FROM {name} WHERE run <> ? AND run NOT IN ({_RUNS})", (LIBRARY,))}

    def act() -> str:
        table = TABLES[RunRow]
        found = database.one("SELECT value FROM counter WHERE name = 'position'")
        start = (int(found[0]) << SHIFT) + 1 if found else 1
        taken = database.one("SELECT max(n) FROM runs")
        start = max(start, (taken[0] or 0) + 1 if taken else 1)
        for n, run in enumerate(sorted(missing), start):
            database.do(table.insert, table.encoded(n, RunRow(run, "lost", LOST, "", "", {})))
            database.do("UPDATE log SET count = count + 1 WHERE n = ? AND count >= 0", (n >> SHIFT << SHIFT,))
        return "Runs of the kind `lost` stand in their places, so that their rest can be exported."

    if missing:
        yield _Ill(
            Finding("missing_runs", f"Rows belong to {len(missing)} runs that are not there: {', '.join(sorted(missing)[:_SHOWN])}."), act
        )


def _calls(database: Database) -> Iterator[_Ill]:
    """Verdicts and partials belong to what was asked; one request has one verdict."""
    sql = (
        "SELECT n FROM calls c WHERE asked > 0 AND NOT EXISTS (SELECT 1 FROM calls a"
        f" WHERE a.n BETWEEN c.asked << {SHIFT} AND (c.asked << {SHIFT}) | {(1 << SHIFT) - 1} AND a.status = 'asked')"
    )
    stray = [row[0] for row in database.all(sql)]
    if stray:
        yield _Ill(
            Finding(
                "verdict_without_asked",
                f"{len(stray)} answers name a request that is not there (positions {_some([n >> SHIFT for n in stray])}).",
            ),
            lambda: _each(database, "UPDATE calls SET asked = 0 WHERE n = ?", [(n,) for n in stray], "They stand for themselves now."),
        )
    twice = [
        row[0]
        for row in database.all(
            f"SELECT asked FROM calls WHERE asked > 0 AND status NOT IN {_OPEN} GROUP BY asked HAVING count(DISTINCT n) > 1"
        )
    ]
    if twice:
        yield _Ill(
            Finding("two_verdicts", f"{len(twice)} requests have more than one verdict (positions {_some(twice)}); the latest serves.")
        )


def _steps(database: Database) -> Iterator[_Ill]:
    """What a step was made from is there; what is withdrawn is there."""
    table = TABLES[StepRow]
    bad = []
    for columns in database.stream(table.select):
        try:
            step: StepRow = table.decoded(columns)
            wanted = {("calls", pos) for pos in step.uses.get("calls", ())} | {
                ("pieces", pos) for pos in dict(step.uses.get("pieces", {})).values()
            }
        except (*_UNREADABLE, AttributeError):
            continue
        if not all(_there(database, name, pos) for name, pos in wanted):
            bad.append(step.pos)
    if bad:
        yield _Ill(
            Finding(
                "step_uses_nothing",
                f"{len(bad)} steps were made from rows that are not there (positions {_some(bad)}); they cannot be replayed.",
            )
        )
    sql = f"SELECT target FROM withdrawn w WHERE NOT EXISTS (SELECT 1 FROM log WHERE log.n = w.target << {SHIFT})"
    nothing = [row[0] for row in database.all(sql)]
    if nothing:
        yield _Ill(Finding("withdrawn_nothing", f"Withdrawn positions that are not there: {_some(nothing)}.", serious=False))


def _there(database: Database, name: str, pos: object) -> bool:
    if not isinstance(pos, int):
        return False
    return (
        database.one(f"SELECT 1 FROM {name} WHERE n BETWEEN ? AND ? LIMIT 1", (pos << SHIFT, (pos << SHIFT) | ((1 << SHIFT) - 1)))
        is not None
    )


def _messages(database: Database) -> Iterator[_Ill]:
    """Every message of a prompt and every source text is there."""
    known = {row[0] for row in database.all("SELECT id FROM texts")}
    missing = {row[0] for row in database.all("SELECT text FROM sources")} - known
    for (prompt,) in database.stream("SELECT prompt FROM calls WHERE prompt <> ''"):
        try:
            missing |= {text for _, text in unpack_json(prompt)} - known
        except _UNREADABLE:
            continue
    if missing:
        yield _Ill(
            Finding("missing_texts", f"{len(missing)} messages of prompts or source texts are missing."),
            lambda: _each(
                database, "INSERT INTO texts VALUES (?, NULL, ?)", [(key, LOST) for key in sorted(missing)], f"They read {LOST} now."
            ),
        )


# -- what is derived -------------------------------------------------------------------------------------------------------


def _vectors(database: Database) -> Iterator[_Ill]:
    """All vectors of a model have one even length (float16) and only finite numbers."""
    counted = database.all("SELECT model, length(vector), count(*) AS c FROM vectors GROUP BY model, length(vector) ORDER BY c")
    usual = {model: length for model, length, _ in counted}  # the most frequent length comes last and stays
    bad = []
    for n, model, vector in database.stream("SELECT n, model, vector FROM vectors"):
        if not vector or len(vector) % 2 or len(vector) != usual[model] or not _finite(vector):
            bad.append(n)
    if bad:
        yield _Ill(
            Finding("half_written_vector", f"{len(bad)} vectors have the wrong size or hold no numbers."),
            lambda: _each(
                database,
                "DELETE FROM vectors WHERE n = ?",
                [(n,) for n in bad],
                f"Dropped {len(bad)}; they are made again when they are needed.",
            ),
        )


_ORDINARY = bytes(high for high in range(256) if high & 0x7C != 0x7C)


def _finite(vector: bytes) -> bool:
    """No infinity and no NaN: those have all five bits of the exponent set."""
    return not vector[1::2].translate(None, _ORDINARY)


def _index(database: Database) -> Iterator[_Ill]:
    """The full-text index holds exactly the terms of the records: compared by a sum of hashes, so that nothing is kept in memory."""
    wanted = count = 0
    for n, run, packed in database.stream("SELECT n, run, terms FROM records WHERE terms <> ''"):
        try:
            found = set(tokens(run, unpack(packed)).split())
        except _UNREADABLE:
            continue
        wanted += sum(_pair(n, token) for token in found)
        count += len(found)
    held = there = 0
    broken = ""
    try:
        database.do("CREATE VIRTUAL TABLE IF NOT EXISTS temp.find_words USING fts5vocab(main, find, instance)")
        for token, n in database.stream("SELECT term, doc FROM temp.find_words"):
            held += _pair(n, token)
            there += 1
        database.do("INSERT INTO find(find) VALUES ('integrity-check')")
    except LibraryDamaged as error:
        broken = error.message
    if broken or (held, there) != (wanted, count):
        yield _Ill(
            Finding("index_out_of_step", broken or f"The full-text index holds {there} entries, the records {count}, and they differ."),
            lambda: rebuild_index(database),
        )


def _pair(n: int, token: str) -> int:
    return zlib.crc32(token.encode("utf-8", "surrogatepass"), n & 0xFFFFFFFF) * 2654435761 + n


def rebuild_index(database: Database) -> str:
    """Build the full-text index anew from the records."""
    database.do("DROP TABLE IF EXISTS find")
    database.do(FIND)
    count = 0
    for n, run, terms in database.all("SELECT n, run, terms FROM records WHERE terms <> ''"):
        database.do("INSERT INTO find(rowid, terms) VALUES (?, ?)", (n, tokens(run, unpack(terms))))
        count += 1
    return f"It was built anew from {count} records."


def _totals(database: Database) -> Iterator[_Ill]:
    """The runs' totals are the sums over their calls."""
    wanted = totals(database)
    held = {row[0]: tuple(row[1:]) for row in database.all("SELECT * FROM totals")}
    wrong = sorted(
        run
        for run in wanted.keys() | held.keys()
        if any(abs(a - b) > 1e-6 * max(1.0, abs(a)) for a, b in zip(wanted.get(run, _NONE), held.get(run, _NONE), strict=True))
    )

    def act() -> str:
        database.do("DELETE FROM totals")
        for run, sums in wanted.items():
            database.do("INSERT INTO totals VALUES (?, ?, ?, ?, ?, ?, ?)", (run, *sums))
        return "They were added up anew."

    if wrong:
        yield _Ill(Finding("totals", f"The totals of {len(wrong)} runs differ from their calls: {', '.join(wrong[:_SHOWN])}."), act)


_SUMS = ("prompt_tokens", "answer_tokens", "cached_tokens", "cost")
_NONE = (0.0,) * 6


def totals(database: Database) -> dict[str, tuple[float, ...]]:
    """Each run's totals, added up from its calls."""
    settled = {row[0] for row in database.all(f"SELECT asked FROM calls WHERE asked > 0 AND status NOT IN {_OPEN}")}
    out: dict[str, list[float]] = {}
    for n, run, status, packed in database.stream("SELECT n, run, status, usage FROM calls WHERE status <> 'partial'"):
        sums = out.setdefault(run, [0.0] * 6)
        sums[4] += status == "asked"
        sums[5] += status == "refused"
        if status == "asked" and n >> SHIFT in settled:
            continue
        try:
            usage = unpack_json(packed)
        except _UNREADABLE:
            continue
        for at, name in enumerate(_SUMS):
            sums[at] += float(usage.get(name) or 0)
    return {run: tuple(sums) for run, sums in out.items()}
