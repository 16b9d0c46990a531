"""Which language a text is in: by script where the script says it, by letters among Cyrillic, by trigrams among the rest."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from fabula.text._chars import HAN, HANGUL, KANA, lazily
from fabula.text._sentences import sentence_ends

if TYPE_CHECKING:
    from lingua import LanguageDetector

_LATIN = {
    "cs": "CZECH", "da": "DANISH", "de": "GERMAN", "en": "ENGLISH", "es": "SPANISH", "fi": "FINNISH", "fr": "FRENCH", "hu": "HUNGARIAN",
    "id": "INDONESIAN", "it": "ITALIAN", "nb": "BOKMAL", "nl": "DUTCH", "pl": "POLISH", "pt": "PORTUGUESE", "ro": "ROMANIAN",
    "sv": "SWEDISH", "tr": "TURKISH", "vi": "VIETNAMESE",
}  # fmt: skip
_CYRILLIC = {"bg": "BULGARIAN", "ru": "RUSSIAN", "uk": "UKRAINIAN"}
_NAMES = _LATIN | _CYRILLIC
_ONE_SCRIPT = {"el": "greek", "he": "hebrew", "th": "thai", "hi": "devanagari", "ar": "arabic", "ka": "georgian", "hy": "armenian"}
_SCRIPT_OF = (
    dict.fromkeys(_LATIN, "latin")
    | dict.fromkeys([*_CYRILLIC, "be", "sr", "mk", "kk"], "cyrillic")
    | {"zh": "east", "ja": "east", "ko": "hangul"}
    | _ONE_SCRIPT
)
_SCRIPTS = {
    "latin": "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff\uff21-\uff3a\uff41-\uff5a",
    "cyrillic": "\u0400-\u052f", "han": HAN, "kana": KANA, "hangul": HANGUL, "greek": "\u0370-\u03ff\u1f00-\u1fff",
    "hebrew": "\u05d0-\u05ea", "arabic": "\u0620-\u06ff\u0750-\u077f", "thai": "\u0e01-\u0e5b", "devanagari": "\u0900-\u097f",
    "georgian": "\u10a0-\u10ff\u1c90-\u1cbf", "armenian": "\u0530-\u058f",
}  # fmt: skip
_FINDERS = {name: lazily(f"[{chars}]") for name, chars in _SCRIPTS.items()}
_WEIGHT = {"han": 3.0, "kana": 2.0, "hangul": 2.0}
"""One such character says as much as this many letters: about the ratio of lengths in translations."""

_SAMPLE = 6_000
_PART = 240.0
"""Letters (weighted) that are judged at once: two or three sentences."""

_PIECE = 300

_RU, _UK, _BE, _SOUTH = (re.compile(chars) for chars in ("[ыэё]", "[їєґ]", "ў", "[јљњђћџѓќѕ]"))
_CAPITAL = re.compile(r"\b[A-Z\u00c0-\u00de\u0100-\u017f][^\W\d_]+")


def _base(code: str) -> str:
    """`zh` for `zh-Hans`, `ZH_cn`."""
    low = re.split(r"[-_]", code.strip().lower(), maxsplit=1)[0]
    return {"yue": "zh", "cmn": "zh", "no": "nb", "nn": "nb", "iw": "he"}.get(low, low)


def _letters(text: str) -> dict[str, float]:
    """Weighted letters of `text` by script."""
    if text.isascii():
        found = len(_FINDERS["latin"]().findall(text))
        return {"latin": float(found)} if found else {}
    counts = {name: len(finder().findall(text)) * _WEIGHT.get(name, 1.0) for name, finder in _FINDERS.items()}
    return {name: count for name, count in counts.items() if count}


def _groups(letters: dict[str, float]) -> dict[str, float]:
    """The same with Han and kana as one group, `east`."""
    out = {name: count for name, count in letters.items() if name not in ("han", "kana")}
    east = letters.get("han", 0.0) + letters.get("kana", 0.0)
    return out | {"east": east} if east else out


@lru_cache(maxsize=16)
def _detector(codes: frozenset[str]) -> LanguageDetector:
    """Trigrams only: 10 MB to 30 MB instead of several hundred, and as sure on whole sentences."""
    from lingua import Language, LanguageDetectorBuilder

    languages: list[Language] = [getattr(Language, _NAMES[code]) for code in sorted(codes)]
    return LanguageDetectorBuilder.from_languages(*languages).with_low_accuracy_mode().build()


def _by_trigrams(text: str, codes: frozenset[str]) -> dict[str, float]:
    """Confidence of each of `codes`, from 0 to 1; together 1."""
    if len(codes) < 2:
        return dict.fromkeys(codes, 1.0)
    values = _detector(codes).compute_language_confidence_values(text)
    by_name = {value.language.name: value.value for value in values}
    return {code: by_name.get(_NAMES[code], 0.0) for code in codes}


def _cyrillic(text: str) -> str | None:
    """Russian, Ukrainian, Belarusian, Bulgarian, Serbian or Macedonian, by the letters that only some of them have."""
    low = text.lower()
    ru, uk, be, south = (len(finder.findall(low)) for finder in (_RU, _UK, _BE, _SOUTH))
    dotted = low.count("і")
    if south > ru and south > uk + be:
        return "mk" if re.search("[ѓќѕ]", low) else "sr"
    if be and dotted > low.count("и"):
        return "be"
    if uk + dotted > 2 * ru:
        return "uk"
    if ru > uk + dotted:
        return "ru"
    if low.count("ъ") * 60 > len(low):
        return "bg"
    values = _by_trigrams(text, frozenset(_CYRILLIC))
    best = max(values, key=lambda code: values[code])
    return best if values[best] >= 0.5 else None


def _latin(text: str, codes: frozenset[str]) -> dict[str, float]:
    """Confidence of each of `codes`, names left aside: they tell where people come from, not what language they are written of in."""
    plain = _CAPITAL.sub(" ", text)
    return _by_trigrams(plain if 3 * len(plain) >= len(text) else text, codes)


def _one(text: str, least: float, allowed: frozenset[str] | None) -> str | None:
    """The language of a text that is taken to be in one; None under `least` weighted letters, or in doubt."""
    letters = _letters(text)
    groups = _groups(letters)
    total = sum(groups.values())
    if total < least:
        return None
    group = max(groups, key=lambda name: groups[name])
    if groups[group] < 0.7 * total:
        return None
    candidates = frozenset(code for code, script in _SCRIPT_OF.items() if script == group and (allowed is None or code in allowed))
    if group == "east":
        code = "ja" if letters.get("kana", 0.0) > 0.06 * groups["east"] else "zh"
        return code if code in candidates else None
    if len(candidates) < 2:
        return next(iter(candidates), None)
    if group == "cyrillic":
        found = _cyrillic(text)
        return found if found in candidates else None
    if total < 2 * least:
        return None
    values = _latin(text, candidates)
    best = max(values, key=lambda code: values[code])
    return best if values[best] >= 0.6 else None


def _sampled(text: str) -> str:
    """At most `_SAMPLE` characters: beginning, middle and end."""
    if len(text) <= _SAMPLE:
        return text
    third, middle = _SAMPLE // 3, len(text) // 2
    return "\n\n".join((text[:third], text[middle - third // 2 : middle + third // 2], text[-third:]))


def _parts(text: str) -> Iterator[tuple[str, float]]:
    """`text` in parts of whole sentences of about `_PART` weighted letters each, with these letters; very long sentences are cut.

    A sentence in another script starts a part of its own.
    """
    part, weight, script, start = "", 0.0, "", 0
    for end in sentence_ends(text):
        for at in range(start, end, _PIECE):
            piece = text[at : min(at + _PIECE, end)]
            groups = _groups(_letters(piece))
            main = max(groups, key=lambda name: groups[name], default=script)
            more = sum(groups.values())
            if main != script and more >= 30 and weight:
                yield part, weight
                part, weight = "", 0.0
            part, weight, script = part + piece, weight + more, main if more >= 30 or not script else script
            if weight >= _PART:
                yield part, weight
                part, weight = "", 0.0
        start = end
    if weight:
        yield part, weight


def detect_language(text: str, among: Collection[str] | None = None) -> str | None:
    """The language of `text` as an ISO 639-1 code, or None where that cannot be told: too short, mixed, or unknown.

    Chinese, Japanese, Korean and others are known by their script, the Cyrillic languages by their letters, 18 languages in
    Latin letters by their trigrams. Of a long text 6,000 characters are looked at. Loads its tables (up to 25 MB, 0.2 s)
    when the first text in Latin letters comes.

    Args:
        text: at least some ten letters, four Chinese characters, or twenty letters in Latin script.
        among: codes that can occur: the text is taken to be in one of these, in none only where its script says so.
    """
    allowed = None if among is None else frozenset(_base(code) for code in among)
    parts = list(_parts(_sampled(text)))
    if len(parts) > 1 and parts[-1][1] < _PART / 2:
        last = parts.pop()
        parts[-1] = (parts[-1][0] + last[0], parts[-1][1] + last[1])
    votes: dict[str, float] = {}
    for part, weight in parts:
        code = _one(part, 10.0, allowed)
        if code is not None:
            votes[code] = votes.get(code, 0.0) + weight
    if not votes:
        return None
    best = max(votes, key=lambda code: votes[code])
    return best if votes[best] >= 0.75 * sum(weight for _, weight in parts) else None


def is_language(text: str, language: str) -> bool | None:
    """Whether `text` is written in `language`, proper names and some foreign words allowed; None where that cannot be told.

    The text is judged in parts of two or three sentences. It is refused if a quarter of it is foreign, or if its end is (a model that
    switched half way goes on in the other language): a twelfth of it and at least a sentence.

    Args:
        text: what a model wrote, without markup.
        language: ISO 639-1 code, `zh-Hans` and the like included.
    """
    wanted = _base(language)
    if wanted not in _SCRIPT_OF:
        return None
    total = foreign = trailing = 0.0
    judged = False
    for part, weight in _parts(text):
        total += weight
        verdict = _part_is(part, weight, wanted)
        judged = judged or verdict is not None
        if verdict is False:
            foreign += weight
            trailing += weight
        elif verdict is True:
            trailing = 0.0
    if not judged:
        return None
    return not (foreign >= 0.25 * total or (trailing >= 0.08 * total and trailing >= 40))


def _part_is(part: str, weight: float, wanted: str) -> bool | None:
    """The same for one part; None where it is too short to say, or mixed evenly."""
    letters = _letters(part)
    groups = _groups(letters)
    script = _SCRIPT_OF[wanted]
    share = groups.get(script, 0.0) / weight if weight else 0.0
    if share < 0.5:
        # a name alone ("Mira") says nothing; four Chinese characters or three words do
        return False if weight >= 12 and share < 0.4 and not _one_name(part) else None
    if script == "east":
        return _east_is(letters, groups["east"], wanted)
    if script == "cyrillic":
        if weight < 20:
            return True if wanted in _CYRILLIC and _cyrillic(part) == wanted else None
        found = _cyrillic(part)
        return found == wanted if found in _SCRIPT_OF and wanted in {"ru", "uk", "bg", "be", "sr", "mk"} else None
    if script != "latin":
        return True if weight >= 6 else None
    if weight < 30:
        return None
    values = _latin(part, frozenset(_LATIN))
    best = max(values, key=lambda code: values[code])
    if best == wanted or {best, wanted} == {"da", "nb"}:
        return True
    if weight < 60 or values[best] < 0.8 or values[wanted] > 0.05:
        return None
    return False


def _one_name(part: str) -> bool:
    """Whether the part is a name or two and no sentence."""
    words = part.split()
    return len(words) <= 3 and all(word[0].isupper() for word in words)


def _east_is(letters: dict[str, float], east: float, wanted: str) -> bool | None:
    kana = letters.get("kana", 0.0) / east
    if wanted == "ja":
        return True if kana > 0.06 else (False if east >= 60 else None)
    if kana > 0.15 or (kana > 0.06 and east >= 60):
        return False
    return True if east >= 9 else None
