"""Recorded exchanges with gateways, each through its row: replies, requests, errors, and what the rows say of them.

    exchange ──host──▶ row ──▶ reply: all that the answer says          request ──▶ history ──▶ the same row: the same
                          └──▶ each `recorded NAME ID` of its entries: that request has the feature, this answer fits
    any conversation ──▶ every row × dialect: nothing that the row forbids, and nothing lost in silence

The walkers (gateway_support) and the rules (gateway_rules) share no code with the dialects.
"""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

import pytest
import sabir
from hypothesis import given, settings
from sabir.authoring import Row
from sabir.contract.dialect import DecodedHistory, Dialect, Rendering
from sabir.errors import (
    AuthenticationFailed,
    CallError,
    ContextTooLong,
    InvalidRequest,
    ModelNotFound,
    RateLimited,
    RenderingRefused,
    ServerFailed,
)
from sabir.options.native import NativeOption
from sabir.vocabulary.messages import Message
from sabir.vocabulary.reply import Reply
from sabir_openai.chat_dialect import CHAT
from sabir_openai.responses_dialect import RESPONSES
from sabir_testing.kit.request_contents import missing_states

from tests.laws import histories
from tests.laws.every import on_every
from tests.rules import check_each
from tests.vendor.gateway_rules import DEVIATIONS, RENAMES, broken_rules, effort_of, has_feature, has_medium, row_file
from tests.vendor.gateway_support import (
    FILES,
    adapter_of,
    added_up,
    error_of,
    figures,
    is_refused,
    read_from,
    recorded,
    row_of,
    said_by,
    scope_of,
    unreported,
    usages,
)
from tests.vendor.responses_support import ECHOES, done_items, final_response
from tests.vendor.support import WIRES, Exchange, contents, exchanges, exchanges_of, fold, missing, tagged, unequal

DIALECTS: Mapping[str, Dialect] = {"openai.chat": CHAT, "openai.responses": RESPONSES}
COUNTS = {"more/openai.chat_at_gateways": 807, "more/mistral.chat": 177, "more/openai.responses_at_gateways": 90}
each_dialect = pytest.mark.parametrize("dialect", DIALECTS)
REMEDY = "mend what decodes or renders it, or the row"
BESIDE = (
    "object", "p", "choices[].index", "choices[].message.role", "choices[].message.tool_calls[].type",
    "choices[].message.tool_calls[].index", "choices[].delta.role", "output[].type", "status",
)  # fmt: skip
"""Paths of an answer that a reply says in other words: padding, roles, and places."""


def test_every_exchange_is_looked_at() -> None:
    assert {file: len(exchanges(file)) for file in COUNTS} == COUNTS
    assert COUNTS.keys() == FILES.keys()


# --- replies ----------------------------------------------------------------------------------------------------------


def reply_to(exchange: Exchange, dialect: str) -> Reply:
    scope = scope_of(exchange, dialect)
    if exchange.events is None:
        return DIALECTS[dialect].decode(exchange.body, scope)
    return fold(DIALECTS[dialect], exchange.stream, scope)


def all_contents(reply: Reply) -> list[str]:
    return contents(chain(reply.messages, *(each.messages for each in reply.alternatives)))


def lost(exchange: Exchange, dialect: str) -> Iterator[str]:
    reply = reply_to(exchange, dialect)
    body = added_up(exchange) if dialect == CHAT.name else final_of(exchange)
    yield from (lost_choice if dialect == CHAT.name else lost_items)(body, reply)
    told = {name: value for name, value in body.items() if name not in (ECHOES if dialect == RESPONSES.name else ())}
    yield from (f"{path}: {value!r:.80} is nowhere" for path, value in missing(told, reply, BESIDE))
    for usage in list(usages(exchange))[-1:]:
        for name, count in figures(usage).items():
            yield from unequal((name, count, getattr(reply.usage, name)))
    yield from unequal(("losses", (), reply.losses))
    yield from unequal(("JSON", reply, Reply.model_validate_json(reply.model_dump_json())))
    if exchange.events is not None:
        whole = DIALECTS[dialect].decode(json.dumps(body).encode(), scope_of(exchange, dialect))
        bare = [each.model_copy(update={"messages": (), "alternatives": ()}) for each in (whole, reply)]
        yield from unequal(("messages", all_contents(whole), all_contents(reply)), ("reply", *bare))


def final_of(exchange: Exchange) -> dict[str, Any]:
    """Return the Responses answer of an exchange; a stream's items are those of its own events."""
    if exchange.events is None:
        body: dict[str, Any] = exchange.response
        return body
    events = [event for event in exchange.events if isinstance(event, dict)]
    return {**final_response(events), "output": done_items(events)}


def lost_choice(body: dict[str, Any], reply: Reply) -> Iterator[str]:
    """Yield where the first choice of a chat answer is not what the reply says."""
    first = min(body["choices"], key=lambda choice: choice["index"])
    wire, read = said_by(first["message"]), read_from(reply.messages)
    if first.get("finish_reason") == "length":  # a call without arguments may have been cut off before them
        wire["calls"] = [(name, option, arguments or "") for name, option, arguments in wire["calls"]]
        read["calls"] = [(name, option, arguments or "") for name, option, arguments in read["calls"]]
    yield from unequal(*((name, value, read[name]) for name, value in wire.items()))
    yield from unequal(("finish reason", first.get("finish_reason") or None, reply.raw_finish_reason))
    if reply.finish_reason == "other":
        yield f"the finish reason {reply.raw_finish_reason!r} has no neutral one"


def lost_items(body: dict[str, Any], reply: Reply) -> Iterator[str]:
    """Yield where the items of a Responses answer are not what the reply says."""
    texts, calls, thoughts = [], [], []
    for item in body["output"]:
        if item["type"] == "message":
            texts += [part["text"] for part in item["content"] if part["type"] == "output_text"]
        elif item["type"] == "function_call":
            calls.append((item["call_id"], item["name"], json.loads(item["arguments"] or "{}")))
        elif item["type"] == "reasoning":
            thoughts += [each["text"] for each in (*(item.get("summary") or ()), *(item.get("content") or ()))]
    read = read_from(reply.messages)
    yield from unequal(("text", "".join(texts), read["text"]), ("calls", calls, read["calls"]))
    for thought in thoughts:
        if thought not in read["reasoning"]:
            yield f"the reasoning {thought!r:.80} is nowhere"


@each_dialect
def test_an_answer_decodes_with_nothing_lost(dialect: str) -> None:
    check_each([each for each in recorded(dialect) if not is_refused(each)], tagged(lost, dialect), REMEDY)


# --- errors -----------------------------------------------------------------------------------------------------------

STATUSES: Mapping[int, type[CallError]] = {
    400: InvalidRequest, 401: AuthenticationFailed, 404: ModelNotFound, 429: RateLimited, 500: ServerFailed,
}  # fmt: skip
TOO_LONG = {"04ddb4f20dbd-0", "3799873568c5-0", "83835bf55c2a-0"}
"""Refusals because of the length of the conversation."""


def misread(exchange: Exchange, dialect: str) -> Iterator[str]:
    events = [event for event in exchange.events or () if error_of(event)]
    reported = events[0] if events else exchange.response
    error = reported.get("error") or reported.get("detail") or reported
    details: dict[str, Any] = error if isinstance(error, dict) else {"message": error}
    status = exchange.status if exchange.status >= 400 else details["status_code"]
    try:
        if exchange.status < 400:
            reply_to(exchange, dialect)
        read = DIALECTS[dialect].decode_error(exchange.status, {}, exchange.body, row_of(exchange))
    except CallError as raised:
        read = raised
    expected = ContextTooLong if exchange.id in TOO_LONG else STATUSES[status]
    code = details.get("code") or details.get("type")
    yield from unequal(("class", expected, type(read)), ("status", status, read.status))
    yield from unequal(("code", None if code is None else str(code), read.code))
    if details["message"].rstrip(" .")[:120] not in str(read):
        yield f"the message became {read}"


@each_dialect
def test_an_error_is_what_its_gateway_says(dialect: str) -> None:
    refused = [each for each in recorded(dialect) if is_refused(each)]
    assert len(refused) == {"openai.chat": 25, "openai.responses": 0}[dialect]
    if refused:
        check_each(refused, tagged(misread, dialect), REMEDY)


# --- requests ---------------------------------------------------------------------------------------------------------


@cache
def history_of(row: str, dialect: str, body: str) -> DecodedHistory:
    return sabir.dialect(f"{row}.{dialect.partition('.')[2]}").decode_history(body)


def sent_again(exchange: Exchange, dialect: str) -> tuple[DecodedHistory, Rendering]:
    """Return the history of a recorded request, and what its row renders of it."""
    history = history_of(row_of(exchange), dialect, json.dumps(exchange.request))
    adapter = adapter_of(row_of(exchange), dialect, history.model)
    return history, adapter.render(history.messages, options=history.options, settings=history.settings)


def changed(exchange: Exchange, dialect: str) -> Iterator[str]:
    history, rendering = sent_again(exchange, dialect)
    yield from unreported(exchange, dialect, history, rendering)


@each_dialect
def test_a_recorded_request_goes_back_with_all_changes_reported(dialect: str) -> None:
    check_each(recorded(dialect), tagged(changed, dialect), REMEDY)


# --- what rows say of recordings --------------------------------------------------------------------------------------


class Tie(NamedTuple):
    """An entry of a row, and one exchange that it names as its source."""

    row: str
    entry: Mapping[str, Any]
    gateway: str
    id: str

    def __str__(self) -> str:
        return f"{self.row}: {self.id}"


@cache
def by_id() -> dict[str, tuple[Exchange, str]]:
    """Return every exchange by its id, with its dialect."""
    return {each.id: (each, dialect) for file, dialect in FILES.items() for each in exchanges(file)}


def ties() -> list[Tie]:
    """Return every source of an entry that is a recording."""
    return [
        Tie(row, entry, *source.split()[1:])
        for row in sorted(Row.load_all_packaged("sabir_openai"))
        for entry in row_file(row)["entries"]
        for source in entry["sources"]
        if source.startswith("recorded ")
    ]


def shown_reasoning(exchange: Exchange, dialect: str) -> bool:
    """Return whether an answer holds reasoning, in any of its forms."""
    if dialect == RESPONSES.name:
        return any(item["type"] == "reasoning" for item in final_of(exchange)["output"])
    messages = [choice["message"] for choice in added_up(exchange)["choices"]]
    said = [said_by(message) for message in messages]
    return any(each["reasoning"] or "</think>" in each["text"] for each in said) or any(
        message.get("reasoning_details") for message in messages
    )


def shown_facts(tie: Tie, exchange: Exchange, dialect: str) -> Iterator[str]:
    """Yield what an exchange shows of an entry beside its lists."""
    entry, body = tie.entry, exchange.request or {}
    for name in (*entry.get("adds", ()), *(RENAMES[field] for field in entry.get("renames", {}).values())):
        if DEVIATIONS[name].shows(body):
            yield name
    is_answer = not is_refused(exchange)
    if is_answer and "reasoning" in entry and shown_reasoning(exchange, dialect) is entry["reasoning"]:
        yield "reasoning"
    if any(has_medium(modality, "", ("user",), body) for modality in entry.get("modalities", ())):
        yield "modalities"
    if effort_of(body) in entry.get("efforts", ()):
        yield "efforts"


def untied(tie: Tie) -> Iterator[str]:
    if tie.id not in by_id():
        yield f"{tie}: there is no such recording"
        return
    exchange, dialect = by_id()[tie.id]
    body, entry = exchange.request or {}, tie.entry
    short = dialect.partition(".")[2]
    if row_of(exchange) != tie.gateway or short not in entry.get("dialects", [short]):
        yield f"{tie}: it is of {row_of(exchange)}.{short}"
    if tie.gateway == tie.row and not exchange.model.startswith(tuple(entry.get("models", [""]))):
        yield f"{tie}: its model is {exchange.model}"
    columns = {column: [each for each in entry.get(column, ()) if has_feature(each, body)] for column in COLUMNS}
    fitting = [each for column, names in columns.items() if COLUMNS[column] is is_refused(exchange) for each in names]
    if not fitting and not [*shown_facts(tie, exchange, dialect)]:
        yield f"{tie}: it shows nothing of the entry; its request has {columns}, its status is {exchange.status}"


COLUMNS = {"accepts": False, "ignores": False, "refuses": True}
"""List of an entry → whether a recording that shows it is an error."""


def test_a_recording_shows_what_an_entry_says() -> None:
    """`refuses` needs an error and the feature in the request, `accepts` and `ignores` an answer and the feature."""
    assert len(ties()) > 150
    check_each(ties(), untied, "correct the entry, or name a recording that shows it")


def kept(tie: Tie) -> Iterator[str]:
    """Yield what a request has when it is rendered again, although the entry's recording shows that it must not."""
    exchange, dialect = by_id()[tie.id]
    if tie.gateway != tie.row:
        return
    rendering = sent_again(exchange, dialect)[1]
    for feature in (*tie.entry.get("refuses", ()), *tie.entry.get("ignores", ())):
        if has_feature(feature, exchange.request or {}) and has_feature(feature, rendering.body):
            yield f"{tie}: {feature} is sent again"


def test_what_a_recording_shows_to_be_refused_is_not_sent_again() -> None:
    limits = [tie for tie in ties() if tie.entry.get("refuses") or tie.entry.get("ignores")]
    assert limits
    check_each(limits, kept, REMEDY)


REFUSALS = {
    "003bb8eb0617-0": "video.url", "1754c978e94f-0": "image.data", "4925d72e27fe-0": "image.data",
    "f123c83bcf82-0": "image.url", "ca8d0a461dc4-0": "video.data", "307a8446b5dd-0": "image.data",
}  # fmt: skip
"""Every recorded request that was refused because of a feature → the feature."""
FAULTY = {
    "04ddb4f20dbd-0": "too long", "3799873568c5-0": "too long", "83835bf55c2a-0": "too long",
    "3ace5544ace4-0": "key", "7dabf5cd811d-0": "key", "60395f95f490-0": "key", "a26388b843ad-1": "too often",
    "5b2b84f328d9-0": "a temperature of 100", "a9a0eafd0791-0": "a temperature of 100",
    "bac655821c80-0": "a temperature that is no number", "919482f517e7-0": "broken base64",
    "6e1410ae71f6-0": "no such model", "991337e912d2-0": "no such model", "bceae6ccd02e-0": "no such model",
    "fa13278fb8db-0": "no such model", "66fe035c5c90-0": "two settings that exclude each other",
    "e23a48361591-0": "the model's own call", "b17178dc6cce-0": "the model's own call",
    "85957f07d5d0-0": "the model did not call",
}  # fmt: skip
"""Every other recorded request that failed → why."""


def test_no_refused_feature_is_sent_again() -> None:
    """Every recorded failure is of a feature, and then a loss takes its place, or has another cause."""
    failed = {each.id for dialect in DIALECTS for each in recorded(dialect) if is_refused(each)}

    assert failed == REFUSALS.keys() | FAULTY.keys()
    for name, feature in REFUSALS.items():
        exchange, dialect = by_id()[name]
        rendering = sent_again(exchange, dialect)[1]
        assert has_feature(feature, exchange.request or {}), name
        assert not has_feature(feature, rendering.body), name
        assert rendering.losses, name


# --- hand-over --------------------------------------------------------------------------------------------------------


class Place(NamedTuple):
    """A row and one of its dialects, by its short name."""

    row: str
    short: str

    def __str__(self) -> str:
        return f"{self.row}.{self.short}"

    def models(self) -> list[str]:
        """Return the name of a model for each prefix of the row, and one that it does not know."""
        prefixes = {prefix for entry in row_file(self.row)["entries"] for prefix in entry.get("models", [""])}
        return [f"{prefix}x1" for prefix in sorted(prefixes | {""})]


PLACES = [
    Place(name, short) for name, row in sorted(Row.load_all_packaged("sabir_openai").items()) for short in row.dialects
]


class Conversation(NamedTuple):
    """A recorded request's history, with one more question."""

    id: str
    number: int
    messages: tuple[Message, ...]
    history: DecodedHistory

    def __str__(self) -> str:
        return self.id


@cache
def conversations() -> list[Conversation]:
    """Return the recorded conversations of all dialects, those that several requests repeat once."""
    found: dict[str, Conversation] = {}
    sources = [(wire, each) for wire in WIRES for each in exchanges_of(wire) if each.request]
    sources += [(f"{row_of(each)}.{name.partition('.')[2]}", each) for name in DIALECTS for each in recorded(name)]
    for wire, exchange in sources:
        body = json.dumps({**(exchange.request or {}), "stream": False}, sort_keys=True)
        if body not in found:
            history = sabir.dialect(wire).decode_history(body)
            messages = (*history.messages, sabir.user("Go on."))
            found[body] = Conversation(exchange.id, len(found), messages, history)
    return list(found.values())


def wrongs(place: Place, model: str, messages: tuple[Message, ...], rendering: Rendering) -> Iterator[str]:
    """Yield what a request breaks of its row's rules, and what of the messages it loses in silence."""
    text = rendering.body_bytes.decode()
    for fault in broken_rules(place.row, place.short, model, json.loads(text)):
        yield f"{place}:{model} {fault}"
    lossy = {loss.message_id for loss in rendering.losses}
    for message in messages:
        if message.id not in lossy:
            for words in words_of(message):
                if json.dumps(words, ensure_ascii=False)[1:-1] not in text:
                    yield f"{place}:{model} loses {words[:60]!r} in silence"


def words_of(message: Message) -> Iterator[str]:
    """Yield the texts of a message that no dialect changes: of its parts and result, its URLs, its option's name."""
    for part in message.parts:
        if part.kind in ("text", "refusal"):
            yield part.text
        elif part.kind == "media" and part.form == "url":
            yield part.url
    if message.call is not None:
        yield message.call.option_name
    if message.result is not None and isinstance(message.result.result, str) and not message.result.is_error:
        yield message.result.result


def unspoken(place: Place, model: str, conversation: Conversation, rendering: Rendering) -> Iterator[str]:
    """Yield the settings that a request neither has nor loses."""
    paths, body = {loss.path for loss in rendering.losses}, json.loads(rendering.body_bytes)
    chosen = conversation.history.settings
    for setting in ("max_output_tokens", "temperature", "top_p", "stop", "seed", "reasoning_effort"):
        is_said = has_feature(setting, body) or any(path.startswith(f"settings.{setting}") for path in paths)
        if getattr(chosen, setting) and not is_said:
            yield f"{place}:{model} loses {setting} in silence"
    for index, option in enumerate(conversation.history.options):
        is_native = isinstance(option, NativeOption) and has_feature(f"native.{option.kind}", body)
        if not is_native and option.name not in str(body.get("tools")) and not paths & {"options", f"options[{index}]"}:
            yield f"{place}:{model} loses the option {option.name} in silence"


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_a_recorded_conversation_goes_on_at_every_gateway(place: Place) -> None:
    """Laws 9 and 13: no request has what its row refuses or ignores, or loses anything in silence."""
    models = place.models()
    # Each conversation goes to every row; where a row has two dialects, each gets one half, and models take turns.
    shorts = list(Row.load_all_packaged("sabir_openai")[place.row].dialects)
    chosen = conversations()[shorts.index(place.short) :: len(shorts)]

    def faults(conversation: Conversation) -> Iterator[str]:
        model = models[conversation.number // len(shorts) % len(models)]
        adapter = adapter_of(place.row, f"openai.{place.short}", model)
        history = conversation.history
        rendering = adapter.render(conversation.messages, options=history.options, settings=history.settings)
        for fault in wrongs(place, model, conversation.messages, rendering):
            yield f"{conversation}: {fault}"
        yield from (f"{conversation}: {fault}" for fault in unspoken(place, model, conversation, rendering))

    check_each(chosen, faults, REMEDY)


@settings(max_examples=25)
@given(history=histories.histories)
@on_every(PLACES)
def test_a_drawn_history_goes_to_every_gateway(place: Place, history: list[Message]) -> None:
    for model in place.models()[:: max(1, len(place.models()) // 3)]:
        try:
            rendering = adapter_of(place.row, f"openai.{place.short}", model).render([*history, sabir.user("Go on.")])
        except RenderingRefused:
            continue
        assert list(wrongs(place, model, (), rendering)) == []
        assert missing_states(history, rendering.body_bytes, rendering.losses) == []
