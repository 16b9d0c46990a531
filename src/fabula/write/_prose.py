"""Prose as a model gives it: cleaned by removing only, and checked before it is accepted (SPEC M6; research/writing.md, 1.3)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fabula.runs import Check
from fabula.text import ends_finished, find_loop, find_requoted, is_language, length, repeated_share, sentences, trim_to_sentence, unit

_FENCE = re.compile(r"\A```[\w-]*\n(.*?)\n?```\s*\Z", re.DOTALL)
_LABEL_WORDS = (
    r"(?:the\s+)?(?:next\s+|new\s+|output\s+|revised\s+|rewritten\s+|first\s+|last\s+|opening\s+)?"
    r"(?:passage|paragraph|text|story|scene|content|answer|output)(?:\s+\d+)?"
    r"|(?:下一|新的?|输出|修改后的?)?(?:段落|正文|故事|文本|内容|场景|回答|片段|一节)"
    r"|(?:следующий\s+|новый\s+)?(?:отрывок|фрагмент|текст|абзац|рассказ|сцена|ответ)"
)
_LABEL_LINE = re.compile(rf"\A[\s#>*_]*(?:{_LABEL_WORDS})[\s*_]*[:：][\s*_]*", re.IGNORECASE)
_PREAMBLE = re.compile(
    r"\A(?:(?:sure|certainly|of course|okay|ok|great)\b[^\n]{0,120}[:.!]|here(?:'s| is| are)\b[^\n]{0,120}:"
    r"|(?:好的|当然|以下|下面)[^\n]{0,60}[：:。]|(?:конечно|вот)\b[^\n]{0,100}:)[\s*]*\n+",
    re.IGNORECASE,
)
_REMARK = re.compile(
    r"\n+[\s*_]*(?:\(?(?:word count|words|characters|note|字数|注|количество слов|примечание)\s*[:：]|---+\s*\Z)[^\n]*\s*\Z",
    re.IGNORECASE,
)
_REFUSAL_START = re.compile(
    r"\A\s*(?:i['’]m sorry|i am sorry|sorry|i can(?:no|['’])t|i cannot|i am unable|i['’]m unable|as an? (?:ai|language model)"
    r"|抱歉|对不起|很抱歉|我无法|作为一个?(?:AI|人工智能|语言模型)"
    r"|извините|к сожалению, я|я не могу|как (?:ии|языковая модель))",
    re.IGNORECASE,
)
_REFUSAL_BODY = re.compile(
    r"\b(?:assist|help (?:you )?with|request|guidelines|policy|language model|AI\b|comply|fulfil)"
    r"|协助|请求|无法(?:满足|提供|完成)|语言模型|准则|помочь|запрос|языков\w+ модел|выполнить",
    re.IGNORECASE,
)

_SHORT_SENTENCE = {"words": 4, "characters": 7}
"""A shorter sentence may come again and again ("Yes," she said)."""
_LIST = re.compile(r"^[ \t]*(?:[-*•]|\d+[.)])[ \t]+\S", re.MULTILINE)
_NO_DASHES = frozenset({"en", "zh", "ja", "de"})
"""Languages in which a line that begins with a dash is an item of a list, never somebody who speaks."""
_REFRAIN = {"words": 25, "characters": 45}
"""A verbatim run shorter than this may be a refrain, if the rest of the passage is new."""
_MOST_REPEATED = 0.25


def clean(raw: str) -> str:
    """A model's answer without what is not the story: fences, a label or remark before it, a count after it. Only removes; a line
    inside the prose that looks like a label stays.
    """
    text = raw.strip().removeprefix("\ufeff")
    fence = _FENCE.match(text)
    if fence:
        text = fence.group(1).strip()
    text = _PREAMBLE.sub("", text, count=1).lstrip()
    text = _LABEL_LINE.sub("", text, count=1).lstrip()
    return _REMARK.sub("", text).strip()


def passage_of(raw: str, language: str) -> str:
    """The finished part of an answer: cleaned, and trimmed to its last whole sentence (empty if there is none)."""
    text = clean(raw)
    return text if ends_finished(text, language) else trim_to_sentence(text, language)


def fresh_part(raw: str, language: str, earlier: Sequence[str]) -> str:
    """The finished part of an answer without the sentences that stand word for word in earlier text, or twice in itself.

    A small model tells again what it was shown. What is new beside that is worth keeping; like cleaning, this only removes.
    """
    told = {_plain(s) for text in earlier for s in sentences(text, language)}
    kept: list[str] = []
    for sentence in sentences(passage_of(raw, language), language):
        form = _plain(sentence)
        if length(sentence, language) < _SHORT_SENTENCE[unit(language)] or form not in told:
            kept.append(sentence)
            told.add(form)
    return "".join(kept).strip()


def _plain(sentence: str) -> str:
    return "".join(c for c in sentence.casefold() if c.isalnum())


def is_refusal(text: str) -> bool:
    """The model declines instead of writing; "I'm sorry," said by someone in the story, is none."""
    return bool(_REFUSAL_START.match(text)) and bool(_REFUSAL_BODY.search(text[:600])) and len(text) < 1_500


def check_prose(language: str, earlier: Sequence[str], minimum: int, *, whole: bool = False, fresh: bool = False) -> Check:
    """A check for passages.

    Args:
        language: ISO 639-1, asked for.
        earlier: texts of the story that the passage may not quote again at length.
        minimum: least length in the language's unit.
        whole: the answer must be finished as it stands (else its finished part counts).
        fresh: only what `fresh_part` leaves counts.
    """

    def check(raw: str, finish: str) -> str | None:
        text = clean(raw)
        if is_refusal(text):
            return "refusal"
        part = text if ends_finished(text, language) else trim_to_sentence(text, language)
        cut = part != text or finish == "length"
        if whole and cut:
            return "cut off"
        if fresh:
            part = fresh_part(raw, language, earlier)
        if not part:
            return ("repeats: all of it" if fresh and cut is False else "cut off") if text else "empty"
        if language in _NO_DASHES and len(_LIST.findall(part)) > 1:
            return "labels"
        loop = find_loop(part)
        if loop is not None:
            return "repeats: itself"
        if is_language(part, language) is False:
            return f"wrong language: {language} was asked for"
        again = find_requoted(part, earlier)
        if again is not None and (length(again, language) >= _REFRAIN[unit(language)] or repeated_share(part, earlier) > _MOST_REPEATED):
            return f"repeats: {again[:80]}"
        size = length(part, language)
        if size < minimum:
            return "cut off" if cut else f"too short: {size} {unit(language)}"
        return None

    return check


def check_language(language: str, *fields: str) -> Check:
    """A check for structured answers: these fields (strings or lists of strings) are in the language asked for."""

    def check(raw: str, _finish: str) -> str | None:
        from fabula.models import extract_json

        value = extract_json(raw)
        if not isinstance(value, dict):
            return "invalid: there is no complete JSON object in it"
        texts = []
        for name in fields:
            held = value.get(name)
            texts += [held] if isinstance(held, str) else [str(item) for item in held] if isinstance(held, list) else []
        said = "\n".join(texts)
        return f"wrong language: {language} was asked for" if is_language(said, language) is False else None

    return check


def loops(text: str) -> bool:
    """The end of a text that is being written goes round in circles: a watch for streams."""
    return find_loop(text[-4_000:]) is not None


def both(*checks: Check) -> Check:
    """The first reason that any of the checks gives."""

    def check(raw: str, finish: str) -> str | None:
        return next((reason for one in checks if (reason := one(raw, finish)) is not None), None)

    return check
