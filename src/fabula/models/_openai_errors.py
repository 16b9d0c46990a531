"""What the OpenAI SDK raises → our error tree. Knows the spellings of the common servers; a key never gets through.

The field names and messages come from the servers' documentation: OpenAI, llama.cpp (`exceed_context_size_error`), vLLM, Anthropic,
Gemini, Mistral, DeepSeek, OpenRouter, Groq, LM Studio.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from fabula.errors import AuthFailed, FabulaError, Filtered, ModelError, RateLimited, ServerFailed, TimedOut, TooLarge, TooLong, Unreachable

_SHOWN = 200
"""Characters of a server's own words that an error repeats."""

_TOO_LONG = re.compile(
    r"context[ _](?:length|window|size|limit)|maximum (?:model|context)|too many tokens|prompt is too long|input token count|"
    r"reduce the length|number of tokens to keep|context the overflows|longer than the maximum model length|"
    r"tokens[^.]{0,40}too large for model",
    re.IGNORECASE,
)
_PROMPT_TOKENS = (
    re.compile(r"(\d+) (?:tokens )?in the (?:messages|input|prompt)", re.IGNORECASE),
    re.compile(
        r"(?:resulted in|prompt contains(?: at least)?|prompt is too long:|input token count \(|prompt \(length|limit:) ?(\d+)",
        re.IGNORECASE,
    ),
    re.compile(r"first (\d+) tokens when context", re.IGNORECASE),
    re.compile(r"request \((\d+) tokens\)", re.IGNORECASE),
    re.compile(r"requested (?:about )?(\d+) tokens", re.IGNORECASE),
)
_WINDOW = (
    re.compile(r"(?:maximum (?:model|context) length (?:is|of)|context (?:length|size) (?:is|of)(?: only)?) (\d+)", re.IGNORECASE),
    re.compile(
        r"tokens > (\d+) maximum|\+ \d+ > (\d+)|tokens allowed \((\d+)\)|model with (\d+) maximum|context size \((\d+) tokens\)",
        re.IGNORECASE,
    ),
)
_FILTERED = re.compile(
    r"content_filter|content_policy|content management policy|moderation|flagged|content exists risk|"
    r"data_inspection_failed|inappropriate content|prohibited_content|safety (?:system|policy)",
    re.IGNORECASE,
)
_NO_CREDIT = re.compile(r"insufficient[_ ](?:quota|balance|credit|funds)|billing|credit balance", re.IGNORECASE)
_REFUSAL = re.compile(
    r"unsupported|not supported|n't support|not support|unknown|unrecognized|unexpected|extra (?:inputs|fields)|not permitted|not allowed|"
    r"invalid|only the default|deprecated|unavailable|not available|not implemented|failed to|exceeds|disabled",
    re.IGNORECASE,
)
_BYTES = re.compile(r"(\d+(?:\.\d+)?) ?(bytes|[kmg]i?b)\b", re.IGNORECASE)
_UNITS = {"b": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
_WAIT_TEXT = re.compile(r"(?:try again in|retry(?:Delay\W+| in| after)) ?((?:\d+h)?(?:\d+m(?!s))?(?:\d+(?:\.\d+)?m?s)?)", re.IGNORECASE)
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


@dataclass(frozen=True)
class Reply:
    """What is known of a failed request: `status` None where there was no answer."""

    status: int | None
    text: str
    """The server's words and codes, as one string to search."""
    message: str
    """The server's own sentence."""
    code: str
    param: str
    headers: Mapping[str, str]
    facts: Mapping[str, Any]
    """The body, where it is an object."""


def clean_address(base_url: str) -> str:
    """Scheme, host, port and path: without a user, a password or a query, in which some people keep keys."""
    parts = urlsplit(base_url)
    host = f"[{parts.hostname}]" if parts.hostname and ":" in parts.hostname else parts.hostname or ""
    return f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}{parts.path.rstrip('/')}"


def redact(text: str, secrets: Iterable[str | None]) -> str:
    """The text without the secrets."""
    for secret in secrets:
        if secret and len(secret) > 3:
            text = text.replace(secret, "***")
    return text


def read_reply(error: Any, secrets: Iterable[str | None] = ()) -> Reply:
    """What an exception of the SDK says, with the secrets taken out."""
    response = getattr(error, "response", None)
    body = error.body if getattr(error, "body", None) is not None else ""
    facts: Mapping[str, Any] = body if isinstance(body, dict) else {}
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, default=str)
    message = facts.get("message") or facts.get("detail") or facts.get("error") or (body if isinstance(body, str) else "") or str(error)
    message = message if isinstance(message, str) else json.dumps(message, ensure_ascii=False, default=str)
    secrets = tuple(secrets)
    status = getattr(error, "status_code", None)
    if status is None and str(facts.get("code", "")).isdigit():
        status = int(facts["code"])
    return Reply(
        status=status,
        text=redact(text, secrets),
        message=_one_line(redact(message, secrets)),
        code=redact(str(facts.get("code") or facts.get("type") or ""), secrets)[:80],
        param=redact(str(facts.get("param") or ""), secrets)[:80],
        headers=response.headers if response is not None else {},
        facts=facts,
    )


def _one_line(text: str) -> str:
    line = " ".join(re.sub(r"<[^>]{0,200}>", " ", text).split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"


def refused_field(reply: Reply, fields: Iterable[str]) -> str | None:
    """Which of the sent optional `fields` the server says it does not take; `response_format` also under the names of its kinds."""
    if reply.status not in (400, 404, 415, 422, 500, 501) or is_too_long(reply) or _FILTERED.search(reply.text):
        return None
    names = {"response_format": r"response_format|json_schema|json_object|structured output|guided", "grammar": r"grammar"}
    if reply.param:
        for field in fields:
            if reply.param.split(".")[0] == field or re.search(names.get(field, r"(?!)"), reply.param):
                return field
    if not _REFUSAL.search(reply.text):
        return None
    for field in fields:
        pattern = names.get(field, rf"['\"`.]{field}['\"`\\:.]|\b{field}\b" if "_" in field else rf"['\"`.\\]{field}['\"`\\:.]")
        if re.search(pattern, reply.text, re.IGNORECASE) and (reply.status != 500 or field == "grammar"):
            return field
    return None


def is_too_long(reply: Reply) -> bool:
    """Whether the server says that prompt and answer do not fit the window."""
    return (
        reply.status in (400, 413, 422, 500)
        and reply.code != "rate_limit_exceeded"
        and ("exceed_context" in reply.text or "context_length" in reply.text or _TOO_LONG.search(reply.text) is not None)
    )


def _first_number(patterns: Iterable[re.Pattern[str]], text: str) -> int | None:
    for pattern in patterns:
        found = pattern.search(text)
        if found:
            return next(int(group) for group in found.groups() if group)
    return None


def wait_seconds(headers: Mapping[str, str], text: str = "") -> float | None:
    """Seconds to wait as the server tells, by `retry-after-ms`, `retry-after` (seconds or a date), `x-ratelimit-reset-*`, or its words."""
    if _number(headers.get("retry-after-ms")) is not None:
        return float(headers["retry-after-ms"]) / 1000
    told = headers.get("retry-after", "")
    if _number(told) is not None:
        return float(told)
    if told and headers.get("date"):
        try:
            return max(0.0, (parsedate_to_datetime(told) - parsedate_to_datetime(headers["date"])).total_seconds())
        except (TypeError, ValueError):
            told = ""
    resets = []
    for what in ("requests", "tokens"):
        reset = headers.get(f"x-ratelimit-reset-{what}", "")
        seconds = _number(reset) if _number(reset) is not None else _span(reset)
        # An epoch instead of a span cannot be told apart by name: no span is ten years long.
        if seconds is not None and seconds < 3e8 and headers.get(f"x-ratelimit-remaining-{what}", "0") == "0":
            resets.append(seconds)
    if resets:
        return max(resets)
    found = _WAIT_TEXT.search(text)
    return _span(found[1]) if found else None


def _number(text: str | None) -> float | None:
    return float(text) if text and re.fullmatch(r"\d+(?:\.\d+)?", text.strip()) else None


def _span(text: str) -> float | None:
    parts = _SPAN.findall(text)
    return sum(float(number) * _SECONDS[unit] for number, unit in parts) if parts else None


def _told_bytes(text: str) -> int | None:
    sizes = [int(float(n) * _UNITS[unit[0].lower()]) for n, unit in _BYTES.findall(text)]
    return min(sizes) if sizes else None


def map_error(
    error: Exception, *, model: str, address: str, secrets: Iterable[str | None] = (), sent_bytes: int | None = None
) -> FabulaError:
    """The error of our tree for an exception of the SDK or its transport.

    Args:
        error: what was raised.
        model: the model asked for.
        address: where, from `clean_address`.
        secrets: strings that must not appear in the result.
        sent_bytes: size of the request's body, bytes; the limit that a 413 teaches is below it.
    """
    import openai

    if isinstance(error, openai.APITimeoutError):
        if "Connect" in type(error.__cause__).__name__:
            return Unreachable(f"Nothing answers at {address}: connecting took too long.")
        return TimedOut(f"{model} at {address} kept silent for too long.")
    if isinstance(error, openai.APIConnectionError):
        return _map_connection(error, model, address, redact(str(error.__cause__ or error), secrets))
    if isinstance(error, openai.APIError):
        reply = read_reply(error, secrets)
        return _map_status(reply, model, address, sent_bytes)
    said = _one_line(redact(str(error), secrets))
    return ServerFailed(f"{model} at {address} sent something that is not an answer: {said or type(error).__name__}.")


def _map_connection(error: Exception, model: str, address: str, said: str) -> FabulaError:
    cause = type(error.__cause__).__name__
    if cause in ("ConnectError", "UnsupportedProtocol", "ProxyError", "InvalidURL", "LocalProtocolError"):
        return Unreachable(f"Nothing answers at {address}: {_one_line(said)}.")
    return ServerFailed(f"The connection to {model} at {address} was broken off.", broken_off=True)


def _map_status(reply: Reply, model: str, address: str, sent_bytes: int | None) -> FabulaError:
    status, where = reply.status, f"{model} at {address}"
    said = f": {reply.message}" if reply.message else ""
    facts: dict[str, Any] = {"status": status, "provider_code": reply.code} if reply.code else {"status": status}
    wait = wait_seconds(reply.headers, reply.text)
    told: dict[str, Any] = {} if wait is None else {"seconds": wait}
    if is_too_long(reply):
        facts |= {"n_prompt_tokens": reply.facts.get("n_prompt_tokens") or _first_number(_PROMPT_TOKENS, reply.text)}
        facts |= {"window": reply.facts.get("n_ctx") or _first_number(_WINDOW, reply.text)}
        return TooLong(f"The prompt is too long for {where}{said}", **{k: v for k, v in facts.items() if v is not None})
    if status in (400, 403, 422, 451) and _FILTERED.search(reply.text):
        return Filtered(f"{where} refused the content{said}", **facts)
    if status == 402 or (status in (400, 403, 429) and _NO_CREDIT.search(reply.text)):
        return ModelError(
            f"The account at {address} has no credit left{said}", "Add credit with the provider, then resume the run.", **facts
        )
    if status in (401, 403, 407):
        return AuthFailed(f"{address} refused the key{said}", **facts)
    if status == 404:
        return ModelError(
            f"{address} does not have {model!r}{said}", "Check FABULA_MODEL and FABULA_BASE_URL; the address mostly ends with /v1.", **facts
        )
    if status in (408, 504, 524):
        return TimedOut(f"{where} gave no answer in time (status {status}){said}", **facts)
    if status == 413:
        return _map_too_large(reply, where, said, facts, sent_bytes)
    if status == 429:
        return RateLimited(f"{where} takes no more requests for now{said}", **facts, **told)
    if status is None or status >= 500 or status in (409, 425):
        return ServerFailed(f"{where} failed{f' with status {status}' if status else ''}{said}", **facts, **told)
    return ModelError(f"{where} did not take the request (status {status}){said}", "Check the model with `fabula model check`.", **facts)


def _map_too_large(reply: Reply, where: str, said: str, facts: dict[str, Any], sent_bytes: int | None) -> FabulaError:
    if reply.code == "rate_limit_exceeded":  # a limit of tokens a minute that this one request exceeds: waiting does not help
        return TooLong(f"The prompt is too long for {where}{said}", **facts)
    told = _told_bytes(reply.text)
    if sent_bytes is not None:
        facts |= {"sent_bytes": sent_bytes, "limit_bytes": told if told is not None and told < sent_bytes else sent_bytes - 1}
    elif told is not None:
        facts |= {"limit_bytes": told}
    return TooLarge(f"The request is too large for {where}{said}", **facts)
