"""Read a recording: the HTTP exchanges of a program with a vendor, in the YAML format of vcrpy and sabir-testing.

    exchange 1: request ──decode_history──▶ messages ┐
                response ──decode───────────▶ reply   ├──▶ one conversation: a later request repeats the messages of the
    exchange 2: request …                            ┘     earlier one, which are shown once

A request that does not continue the earlier one begins after a heading. A failed request is a heading with its status.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import sabir
from sabir.authoring import DecodeScope, Fold, one_line
from sabir.errors import CallError, HistoryInvalid

from sabir_cli.inspect.inspection import InspectedMessage, Inspection, inspect_reply, plain_entries
from sabir_cli.output import UsageError

Candidates: TypeAlias = "list[tuple[sabir.PureDialect, sabir.DecodedHistory]]"
"""The dialects that can read a request, and the request's contents in each."""

_START = re.compile(rb"\A(?:\s*#.*\n)*\s*(?:interactions|provenance|version):", re.MULTILINE)


def is_recording(content: bytes) -> bool:
    """Return whether a file's content looks like a recording: YAML with the field `interactions`."""
    return bool(_START.match(content)) and b"interactions:" in content


def as_recording(title: str, content: bytes, recognise: Callable[[bytes], Candidates]) -> Inspection:
    """Return the conversation in a recording. Raises HistoryInvalid if it has no exchange with a known API, and
    UsageError if PyYAML is missing.
    """
    exchanges = _read_exchanges(content)
    entries: list[InspectedMessage] = []
    notes: list[str] = []
    last: sabir.DecodedHistory | None = None
    for number, exchange in enumerate(exchanges, 1):
        body = as_bytes(exchange["request"].get("body"))
        candidates = recognise(body) if body.lstrip().startswith(b"{") else []
        if not candidates:
            notes.append(f"exchange {number} is not a request of an installed dialect")
            continue
        dialect, last, answer, note = _read_exchange_as(candidates, exchange)
        notes += [f"exchange {number}: {note}"] if note else []
        fresh, is_continued = _without_repeated(entries, last.messages)
        heading = "" if is_continued else f"Exchange {number}: {last.model or dialect.dialect.name}"
        fresh += answer
        if fresh and heading:
            fresh[0] = replace(fresh[0], heading=heading)
        entries += fresh
    if last is None:
        raise HistoryInvalid("the recording has no request that an installed dialect can read; install its provider")
    return Inspection(title, "recording", tuple(entries), last.options, last.settings, tuple(notes))


def _read_exchanges(content: bytes) -> list[Mapping[str, Any]]:
    try:
        import yaml
    except ModuleNotFoundError:
        raise UsageError('recordings need PyYAML; pip install "sabir-cli[inspect]"') from None
    try:
        document = yaml.load(content, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        exchanges = [each for each in document["interactions"] if each["request"] and each["response"]]
    except (yaml.YAMLError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise HistoryInvalid(f"the recording is not valid: {one_line(error, 200)}; record it again") from None
    return exchanges


def as_bytes(body: object) -> bytes:
    """Return the body of a recorded request or response."""
    return body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body if isinstance(body, bytes) else b""


def _read_exchange_as(
    candidates: Candidates, exchange: Mapping[str, Any]
) -> tuple[sabir.PureDialect, sabir.DecodedHistory, list[InspectedMessage], str]:
    """Return the first dialect that can read the response too, the request's contents, the messages of the response,
    and a note if no dialect can read the response or if it is an error.
    """
    notes: list[str] = []
    for dialect, history in candidates:
        try:
            status = int(exchange["response"]["status"]["code"])
            body = as_bytes(exchange["response"]["body"].get("string"))
            if status >= 400:
                text = one_line(body.decode("utf-8", "replace"), 200)
                return dialect, history, [], f"it failed with HTTP {status}: {text}"
            reply = _decode_response(dialect, exchange["response"].get("headers") or {}, body)
            return dialect, history, inspect_reply(reply), ""
        except (CallError, KeyError, TypeError, ValueError, AttributeError) as error:
            notes.append(f"the response cannot be read: {one_line(error, 200)}")
    return *candidates[0], [], notes[0]


def _decode_response(dialect: sabir.PureDialect, headers: Mapping[str, Any], body: bytes) -> sabir.Reply:
    """Return the reply in a whole or streamed response. Raises CallError if it cannot be read."""
    lines = next((lines for name, lines in headers.items() if name.lower() == "content-type"), "")
    content_type = lines if isinstance(lines, str) else ", ".join(lines)
    is_json = body.lstrip()[:1] == b"{" and "stream" not in content_type
    if is_json:
        return dialect.decode(body)
    decoder, framing, fold = dialect.decoder(), dialect.dialect.framing(content_type), Fold(DecodeScope(dialect.target))
    for event in [*framing.feed(body), *framing.close()]:
        for stream_event in decoder.feed(event):
            fold.feed(stream_event)
    for stream_event in decoder.close():
        fold.feed(stream_event)
    return fold.reply()


def _without_repeated(
    entries: Sequence[InspectedMessage], messages: Sequence[sabir.Message]
) -> tuple[list[InspectedMessage], bool]:
    """Return the messages of a request that the earlier exchanges do not have, and whether it continues them."""
    earlier = [_gist(entry.message) for entry in entries]
    gists = [_gist(message) for message in messages]
    if earlier and gists[: len(earlier)] == earlier:
        return [*plain_entries(messages[len(earlier) :])], True
    return [*plain_entries(messages)], not entries


def _gist(message: sabir.Message) -> tuple[object, ...]:
    """Return what a message and its repetition in a later request have in common."""
    if message.call is not None:
        return "call", message.call.option_name, message.call.arguments_json
    if message.result is not None:
        return "option", message.result.option_name, message.result.invocation_id
    return message.policy, message.text
