"""The one adapter: any address that speaks the OpenAI chat API, through the `openai` SDK (loaded when first asked).

The SDK's own retries are off: retrying is a wrapper's work, so that the journal sees it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fabula.errors import FabulaError, InputError, ServerFailed, TimedOut, TooLarge, TooLong
from fabula.models._extract import extract_json
from fabula.models._learnt import LADDER, Learnt
from fabula.models._openai_read import BROKEN, Collected
from fabula.models._port import Event, Finish, Message, Note, Profile, Request, Schema, Structured, TextDelta, Usage
from fabula.models._scripted import crude_tokens

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI, AsyncStream
    from openai.types.chat import ChatCompletionChunk

    from fabula.models._openai_errors import Reply

_MOST_REFUSALS = 12
"""Fields that may be refused one after another in one call."""
_CONNECT_SECONDS = 10.0
_AFTER_FINISH_SECONDS = 10.0
"""Longest silence after the finish reason: only the usage is still to come."""
_MESSAGE_TOKENS = 4
"""Tokens that a chat template adds to each message, about."""
_KNOBS = ("temperature", "top_p", "min_p", "frequency_penalty", "presence_penalty", "dry_multiplier")
_IGNORED_TWICE = 2
"""Answers without JSON after which a server is taken to ignore the schema."""
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


class OpenAIModel:
    """A model at an address that speaks the OpenAI chat API.

    Args:
        name: the model's name, as fingerprints and the journal have it.
        base_url: the address, mostly ending with `/v1`.
        api_key: the key, or None.
        profile: what is known of server and family.
        http_client: a client to use instead of an own one (an own one ignores proxy settings for loopback addresses).
        count_tokens: counts tokens of a text; with it the window is checked before sending, and usage that is not told is estimated by it.
        grammar: JSON schema → grammar, where the server takes llama.cpp's `grammar` field; without it that rung is passed over.
        learnt: what the server taught earlier.
        served_as: the name to send, where it differs from `name`.
    """

    def __init__(
        self,
        name: str,
        base_url: str,
        api_key: str | None,
        profile: Profile,
        *,
        http_client: httpx2.AsyncClient | None = None,
        count_tokens: Callable[[str], int] | None = None,
        grammar: Callable[[Mapping[str, Any]], str] | None = None,
        learnt: Learnt | None = None,
        served_as: str | None = None,
    ) -> None:
        from fabula.models._openai_errors import clean_address

        self._name, self._served_as = name, served_as or name
        self._base_url, self._address = base_url, clean_address(base_url)
        self._key = (api_key or "").strip() or None
        if self._key and not (self._key.isascii() and self._key.isprintable() and " " not in self._key):
            raise InputError(
                f"The key for {self._address} holds characters that a key cannot have.", "Store the key again, without line breaks."
            )
        self._profile = (learnt or Learnt()).applied(profile)
        self._learnt = learnt or Learnt()
        self._given_client, self._count, self._grammar = http_client, count_tokens, grammar
        self._sdk: AsyncOpenAI | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._refused_schemas: set[tuple[Structured, str]] = set()
        self._without_json = 0
        self._told_and_counted = [0, 0]

    def __repr__(self) -> str:
        return f"OpenAIModel({self._name!r}, {self._address!r})"

    @property
    def name(self) -> str:
        """The model's name."""
        return self._name

    @property
    def profile(self) -> Profile:
        """What is known, refined by what was learnt."""
        return self._profile

    @property
    def learnt(self) -> Learnt:
        """What the server taught so far; a caller may store it and give it back at the next opening."""
        told, counted = self._told_and_counted
        return replace(self._learnt, token_ratio=round(told / counted, 4)) if counted else self._learnt

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        """Ask once.

        A field or a rung of the schema ladder that the server refuses is left out, noted, and remembered for the process.

        Raises:
            TooLong: by our count, before sending, or as the server says.
            TooLarge: the request exceeds the known byte limit (before sending), or the server says so.
            ModelError: any other of its branch, as `map_error` says.
        """
        self._check_window(request)
        for number in range(_MOST_REFUSALS):
            fields, notes = self._fields(request)
            for note in notes if number == 0 else ():
                yield Note(note)
            opened = await self._open(fields, request.schema)
            if isinstance(opened, str):
                yield Note(opened)
                continue
            try:
                async for event in self._read(opened, request, int(fields.get("max_tokens") or fields.get("max_completion_tokens") or 0)):
                    yield event
            finally:
                await opened.close()
            return
        raise ServerFailed(
            f"{self._name} at {self._address} refused one field after another.", "Check the model with `fabula model check`."
        )

    async def close(self) -> None:
        """Close the connections."""
        sdk, self._sdk = self._sdk, None
        if sdk is not None and self._loop is asyncio.get_running_loop() and self._given_client is None:
            await sdk.close()

    # -- before sending

    def _check_window(self, request: Request) -> None:
        if self._count is None:
            return
        prompt, window = self._estimate(request), self._profile.window
        answer = min(request.sampling.max_tokens, self._profile.max_answer)
        if prompt + answer > window:
            raise TooLong(
                f"The prompt has about {prompt} tokens and the answer may have {answer}, but {self._name} takes {window} together.",
                n_prompt_tokens=prompt,
                window=window,
                estimated=True,
            )

    def _estimate(self, request: Request) -> int:
        """Prompt tokens by our count, the schema included where it stands in the prompt."""
        count = self._count or crude_tokens
        ratio = self._profile.token_ratio if self._count else 1.0
        messages = (
            _with_schema(request.messages, request.schema) if self._rung(request.schema) in ("json_object", "text") else request.messages
        )
        return int(sum(count(m.content) * ratio + _MESSAGE_TOKENS for m in messages)) + 1

    def _rung(self, schema: Schema | None) -> Structured:
        if schema is None:
            return "text"
        for rung in LADDER[LADDER.index(self._profile.structured) :]:
            if (rung, schema.name) not in self._refused_schemas and (rung != "grammar" or self._grammar is not None):
                return rung
        return "text"

    def _fields(self, request: Request) -> tuple[dict[str, Any], list[str]]:
        """All that is sent but `stream`, and notes on what is left out."""
        profile, sampling, notes = self._profile, request.sampling, []
        rung, schema = self._rung(request.schema), request.schema
        messages = _with_schema(request.messages, schema) if schema is not None and rung in ("json_object", "text") else request.messages
        fields: dict[str, Any] = {"model": self._served_as, "messages": [{"role": m.role, "content": m.content} for m in messages]}
        if sampling.max_tokens > profile.max_answer:
            notes.append(f"max_tokens is {profile.max_answer} instead of {sampling.max_tokens}: {self._name} gives no longer answers.")
        long_name = "max_completion_tokens" in profile.knobs or "max_tokens" in self._learnt.refused
        fields["max_completion_tokens" if long_name else "max_tokens"] = min(sampling.max_tokens, profile.max_answer)
        wished: dict[str, Any] = {knob: getattr(sampling, knob) for knob in _KNOBS if getattr(sampling, knob) is not None}
        if sampling.stop:
            wished["stop"] = list(sampling.stop)
        wished["seed"] = request.seed
        for knob, value in wished.items():
            if knob in profile.knobs:
                fields[knob] = value
            else:
                notes.append(f"{knob} is not sent: {self._name} does not take it.")
        if schema is not None and rung == "grammar" and self._grammar is not None:
            fields["grammar"] = self._grammar(schema.body)
        elif schema is not None and rung == "json_schema":
            wrapped = {"name": schema.name, "strict": _is_strict(schema.body), "schema": dict(schema.body)}
            fields["response_format"] = {"type": "json_schema", "json_schema": wrapped}
        elif schema is not None and rung == "json_object":
            fields["response_format"] = {"type": "json_object"}
        if "stream_options" not in self._learnt.refused:
            fields["stream_options"] = {"include_usage": True}
        return fields, notes

    def _check_bytes(self, fields: Mapping[str, Any]) -> None:
        limit = self._profile.request_bytes
        if limit is None:
            return
        size = len(json.dumps({**fields, "stream": True}, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))
        if size > limit:
            raise TooLarge(
                f"The request has {size} bytes, but {self._name} at {self._address} takes {limit}.",
                limit_bytes=limit,
                sent_bytes=size,
                sent=False,
            )

    # -- sending

    def _client(self) -> AsyncOpenAI:
        """The SDK's client; connections belong to an event loop, so each loop gets its own."""
        import httpx2
        from openai import AsyncOpenAI

        loop = asyncio.get_running_loop()
        if self._sdk is None or self._loop is not loop:
            silence = self._profile.timeout_seconds
            timeout = httpx2.Timeout(silence, connect=min(_CONNECT_SECONDS, silence), pool=None)
            client = self._given_client
            if client is None and urlsplit(self._base_url).hostname in _LOOPBACK:
                client = httpx2.AsyncClient(trust_env=False, timeout=timeout, limits=httpx2.Limits(max_connections=None))
            self._sdk = AsyncOpenAI(
                api_key=self._key or "none",
                base_url=self._base_url,
                max_retries=0,
                timeout=timeout,
                http_client=client,
            )
            self._loop = loop
        return self._sdk

    async def _open(self, fields: dict[str, Any], schema: Schema | None) -> AsyncStream[ChatCompletionChunk] | str:
        """The opened answer, or a note on what was refused and will be left out."""
        import openai

        from fabula.models._openai_errors import read_reply, refused_field

        self._check_bytes(fields)
        headers = {} if self._key else {"Authorization": openai.Omit()}
        rest = {name: value for name, value in fields.items() if name not in ("model", "messages")}
        try:
            async with asyncio.timeout(self._profile.timeout_seconds):
                return await self._client().chat.completions.create(
                    model=fields["model"], messages=fields["messages"], stream=True, extra_body=rest, extra_headers=headers
                )
        except TimeoutError:
            raise TimedOut(f"{self._name} at {self._address} kept silent for {self._profile.timeout_seconds:g} s.") from None
        except openai.OpenAIError as error:
            reply = read_reply(error, (self._key,))
            refused = refused_field(reply, rest)
            if refused is not None:
                return self._leave_out(refused, reply, schema)
            raise self._mapped(error) from None

    def _mapped(self, error: Exception) -> FabulaError:
        from fabula.models._openai_errors import map_error

        request = getattr(error, "request", None)
        sent = len(request.content) if getattr(error, "status_code", None) == 413 and request is not None else None
        mapped = map_error(error, model=self._name, address=self._address, secrets=(self._key, self._base_url), sent_bytes=sent)
        if isinstance(mapped, TooLarge) and "limit_bytes" in mapped.details:
            self._learn(request_bytes=mapped.details["limit_bytes"])
        if isinstance(mapped, TooLong) and mapped.details.get("window"):
            self._learn(window=mapped.details["window"])
        return mapped

    def _learn(self, **facts: Any) -> None:
        self._learnt = replace(self._learnt, **facts)
        self._profile = replace(self._learnt, token_ratio=None).applied(self._profile)

    def _leave_out(self, field: str, reply: Reply, schema: Schema | None) -> str:
        """Remember what was refused; returns the note. The cause is not `raise`d along: its text may hold what must not be logged."""
        why = f" ({reply.message})" if reply.message else ""
        if field in ("response_format", "grammar") and schema is not None:
            rung = self._rung(schema)
            lower = LADDER[min(LADDER.index(rung) + 1, len(LADDER) - 1)]
            if "schema" in reply.text.lower().replace("json_schema", "") or "repetitions" in reply.text or "parse" in reply.text:
                self._refused_schemas.add((rung, schema.name))
                return f"{self._name} does not take the schema {schema.name!r} as {rung}; asking for {lower}{why}."
            self._learn(structured=lower)
            return f"{self._name} has no structured answers of the kind {rung}; asking for {lower} from now on{why}."
        self._learn(refused=self._learnt.refused | {field})
        if field == "max_tokens":
            return f"{self._name} wants max_completion_tokens instead of max_tokens{why}."
        return f"{field} is left out from now on: {self._name} does not take it{why}."

    # -- reading

    async def _read(self, opened: AsyncStream[ChatCompletionChunk], request: Request, most_tokens: int) -> AsyncIterator[Event]:
        collected = Collected()
        kind = opened.response.headers.get("content-type", "")
        if kind and "event-stream" not in kind:
            collected.take(await self._plain(opened, kind))
            collected.end()
            if collected.text:
                yield TextDelta("".join(collected.text))
        else:
            async for piece in self._pieces(opened, collected):
                yield TextDelta(piece)
        told = collected.tokens()
        if (collected.finish or "").lower() in BROKEN or (collected.finish is None and told is None):
            raise ServerFailed(f"{self._name} at {self._address} was broken off: the answer has no end.", broken_off=True)
        usage, text = self._usage(request, collected), "".join(collected.text)
        reason = collected.reason()
        if collected.thinking.thought:
            yield Note(f"{self._name} thought for {collected.thinking.thought} characters before it answered; they are left out.")
        if reason == "stop" and told is not None and told[1] >= most_tokens > 0:
            yield Note(f"The server says `stop`, but the answer has all {most_tokens} tokens that were allowed: taken as cut off.")
            reason = "length"
        note = self._heed_schema(request.schema, text) if reason == "stop" else None
        if note:
            yield Note(note)
        yield usage
        yield Finish(reason)

    async def _pieces(self, opened: AsyncStream[ChatCompletionChunk], collected: Collected) -> AsyncIterator[str]:
        """Text as it comes, each wait bounded."""
        import httpx2
        import openai

        while True:
            silence = (
                self._profile.timeout_seconds if collected.finish is None else min(_AFTER_FINISH_SECONDS, self._profile.timeout_seconds)
            )
            try:
                async with asyncio.timeout(silence):
                    chunk = await opened.__anext__()
            except StopAsyncIteration:
                break
            except TimeoutError:
                if collected.finish is not None:
                    break
                raise TimedOut(f"{self._name} at {self._address} fell silent for {silence:g} s in mid-answer.") from None
            except (openai.OpenAIError, httpx2.HTTPError, httpx2.StreamError, ValueError) as error:
                if collected.finish is not None and not isinstance(error, openai.APIStatusError):
                    break
                raise self._mapped(error) from None
            new = collected.take(chunk)
            if new:
                yield new
        rest = collected.end()
        if rest:
            yield rest

    async def _plain(self, opened: AsyncStream[ChatCompletionChunk], kind: str) -> Mapping[str, Any]:
        """The body of a server that ignores `stream`."""
        import httpx2

        try:
            async with asyncio.timeout(self._profile.timeout_seconds):
                raw = await opened.response.aread()
        except (TimeoutError, httpx2.TimeoutException):
            raise TimedOut(f"{self._name} at {self._address} fell silent in mid-answer.") from None
        except (httpx2.HTTPError, httpx2.StreamError):
            raise ServerFailed(f"{self._name} at {self._address} was broken off: the answer has no end.", broken_off=True) from None
        try:
            body = json.loads(raw)
        except ValueError:
            body = None
        if isinstance(body, dict) and body.get("choices"):
            return body
        if isinstance(body, dict) and body.get("error"):
            import openai

            problem = body["error"] if isinstance(body["error"], dict) else {"message": str(body["error"])}
            raise self._mapped(openai.APIError(str(problem.get("message", "")), opened.response.request, body=problem))
        raise ServerFailed(
            f"{self._address} sent {kind.split(';')[0]} that is not an answer.", "Check FABULA_BASE_URL; the address mostly ends with /v1."
        )

    def _usage(self, request: Request, collected: Collected) -> Usage:
        told, profile = collected.tokens(), self._profile
        if told is None:
            count = self._count or crude_tokens
            prompt, answer, cached, cost = self._estimate(request), count("".join(collected.text)), 0, None
        else:
            prompt, answer, cached, cost = told
            if self._count is not None and request.schema is None:
                self._told_and_counted[0] += prompt
                self._told_and_counted[1] += sum(self._count(m.content) + _MESSAGE_TOKENS for m in request.messages)
        priced = (prompt * profile.prompt_price + answer * profile.answer_price) / 1_000_000
        return Usage(prompt, answer, cached, priced if profile.price_known or cost is None else cost, told is None)

    def _heed_schema(self, schema: Schema | None, text: str) -> str | None:
        """Notice a server that takes the schema and ignores it: such a model never sees it, so from now on it stands in the prompt."""
        rung = self._rung(schema)
        if schema is None or rung not in ("grammar", "json_schema") or self._without_json < 0:
            return None
        if isinstance(extract_json(text), dict):
            self._without_json = -1
            return None
        self._without_json += 1
        if self._without_json < _IGNORED_TWICE:
            return None
        self._learn(structured="json_object")
        return f"{self._name} takes a schema but does not keep to it; from now on the schema stands in the prompt."


def _with_schema(messages: tuple[Message, ...], schema: Schema | None) -> tuple[Message, ...]:
    """The messages with the schema at the end of the last one from the user, so that the stable part of the prompt stays in front."""
    if schema is None:
        return messages
    asked = f"Answer with one JSON object and nothing else. It must follow this JSON schema:\n{json.dumps(schema.body, ensure_ascii=False)}"
    last = max((i for i, m in enumerate(messages) if m.role == "user"), default=None)
    if last is None:
        return (*messages, Message("user", asked))
    return (*messages[:last], Message("user", f"{messages[last].content}\n\n{asked}"), *messages[last + 1 :])


def _is_strict(schema: Any) -> bool:
    """Whether a schema keeps to what `strict` demands: every object closed and all its fields required."""
    if isinstance(schema, list):
        return all(_is_strict(part) for part in schema)
    if not isinstance(schema, Mapping):
        return True
    if isinstance(schema.get("properties"), Mapping):
        if schema.get("additionalProperties") is not False or set(schema["properties"]) != set(schema.get("required", ())):
            return False
        return all(_is_strict(part) for part in schema["properties"].values())
    return all(_is_strict(value) for key, value in schema.items() if key not in ("enum", "const", "required"))
