"""Readers of stored requests that forget one thing, which no random conversation contains.

BROKEN     case → a fault that this case alone stops      FAULTS     (case, the fault) → a further fault of its kind
"""

from collections.abc import Callable, Mapping
from typing import Any

from sabir.contract.dialect import DecodedHistory
from sabir.contract.scope import DecodeScope
from sabir_testing.families.stored_requests import FEATURES, UNKNOWN_FIELD
from sabir_testing.histories.samples import CHOICES, SETTINGS, medium

from tests.testing.broken.complete_requests import WIRE_FIELDS
from tests.testing.broken.laws import reading, without
from tests.testing.broken.requests import head
from tests.testing.harness import Breakage, changed

Body = dict[str, Any]
UNDETECTED = medium("image", "undetected", "acme")[1]
FEATURE = "test_a_stored_feature_reads_back"
NESTED = "test_unknown_fields_of_nested_objects_are_kept"


def forgets(field: str, is_meant: Callable[[Any, Body], bool] = lambda value, body: True) -> Breakage:
    """A field is not read where it is meant."""

    def change(body: Body) -> Body:
        is_left_out = field in body and is_meant(body[field], body)
        return {name: value for name, value in body.items() if not (name == field and is_left_out)}

    return reading(change)


def parts(change: Callable[[Body], Body | None]) -> Breakage:
    """Every part of every turn is changed; None leaves it out."""

    def changed(body: Body) -> Body:
        turns = [{**turn, "parts": _changed(turn["parts"], change)} for turn in body.get("turns", ())]
        return {**body, "turns": turns} if turns else body

    return reading(changed)


def _changed(old: list[Any], change: Callable[[Body], Body | None]) -> list[Any]:
    return [new for part in old if (new := change(part)) is not None]


def lost(is_meant: Callable[[Body], bool]) -> Breakage:
    """Some parts are not read."""
    return parts(lambda part: None if is_meant(part) else part)


def renamed(is_meant: Callable[[Body], bool]) -> Breakage:
    """Some media are read with another name."""
    return parts(lambda part: {**part, "name": "kit.other"} if is_meant(part) and "name" in part else part)


def _is_bare(tools: Any, body: Body) -> bool:
    """Whether only options are set, and none is called."""
    return set(body) == {"model", "tools", "turns"} and len(body["turns"]) == 1


def _chooses(choice: str) -> Callable[[Any, Body], bool]:
    if choice == "named":
        return lambda value, body: isinstance(value, Mapping)
    return lambda value, body: bool(value == choice)


def _is(kind: str, field: str) -> Callable[[Body], bool]:
    return lambda part: part.get("type") == kind and field in part and len(part) > 2 and part[field] != UNDETECTED


def _is_undetected(kind: str) -> Callable[[Body], bool]:
    return lambda part: part.get("type") == kind and part.get("data") == UNDETECTED


def _replaced(old: str, new: str) -> Callable[[Body], Body]:
    """A result of this text has another one."""

    def change(part: Body) -> Body:
        texts = [{**each, "text": new} if each.get("text") == old else each for each in part.get("parts", ())]
        return {**part, "parts": texts} if texts else part

    return change


def _without_error(part: Body) -> Body:
    """A failure of this message has no type."""
    error = part.get("error") or {}
    return {**part, "error": {"message": error["message"]}} if error.get("message") == "kit-no-such-word" else part


def _without_retryable(part: Body) -> Body:
    """It is not read whether a failure is temporary."""
    error = part.get("error") or {}
    return {**part, "error": {**error, "retryable": None}} if error.get("message") == "kit-not-now" else part


def _known_of(kind: str, *known: str) -> Callable[[Body], Body]:
    """Of a part of this type, the known fields are read."""
    return lambda part: {name: part[name] for name in known if name in part} if part.get("type") == kind else part


def _known_of_tools(body: Body) -> Body:
    """Of an option's declaration, the known fields are read."""
    if "tools" not in body:
        return body
    known = ("name", "description", "parameters")
    return {**body, "tools": [{name: tool[name] for name in known if name in tool} for tool in body["tools"]]}


def _known_of_schemas(body: Body) -> Body:
    """Of an option's schema, the fields of JSON Schema are read."""
    tools = [{**tool, "parameters": _without_unknown(tool["parameters"])} for tool in body.get("tools", ())]
    return {**body, "tools": tools} if tools else body


def _without_unknown(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_unknown(each) for name, each in value.items() if name != UNKNOWN_FIELD}
    return value


def swapped(own: Any, body: bytes, scope: DecodeScope) -> DecodedHistory:
    """The losses of a stored request have path and reason in each other's place."""
    decoded: DecodedHistory = own(body, scope)
    losses = (loss.model_copy(update={"path": loss.reason, "reason": loss.path}) for loss in decoded.losses)
    return decoded.model_copy(update={"losses": tuple(losses)})


SETTINGS_SENT = [name for name in SETTINGS if name not in ("option_choice", "reasoning_effort")]
MEDIA = {"image.bytes": ("image", "data"), "image.url": ("image", "url"), "audio.bytes": ("audio", "data"),
         "document.bytes": ("document", "data")}  # fmt: skip

BROKEN: Mapping[str, Breakage] = {
    f"{FEATURE}[options]": forgets("tools", _is_bare),
    **{f"{FEATURE}[option_choice.{each}]": forgets("choice", _chooses(each)) for each in CHOICES},
    **{f"{FEATURE}[{name}]": forgets(WIRE_FIELDS[name]) for name in SETTINGS_SENT},
    **{
        f"{FEATURE}[reasoning_effort.{each}]": forgets("effort", lambda value, body, each=each: value == each)
        for each in SETTINGS["reasoning_effort"]
    },
    **{f"{FEATURE}[{name}]": renamed(_is(*place)) for name, place in MEDIA.items()},
    **{f"{FEATURE}[{kind}.undetected]": renamed(_is_undetected(kind)) for kind in ("image", "audio", "document")},
    f"{FEATURE}[call]": parts(_replaced('{"kit_page":1}', "1")),
    f"{FEATURE}[error]": parts(_without_error),
    f"{FEATURE}[retryable error]": parts(_without_retryable),
    f"{FEATURE}[parallel calls]": parts(_replaced("[1,null]", "[1]")),
    f"{FEATURE}[error of parts]": parts(_replaced("kit-detail", "kit")),
    f"{FEATURE}[refusal]": parts(lambda part: {**part, "text": "No."} if part.get("type") == "refusal" else part),
    f"{FEATURE}[replies]": lost(lambda part: part.get("type") == "thought"),
    NESTED: reading(_known_of_tools),
    "test_a_loss_of_a_stored_request_names_its_place": changed(decode_history=swapped),
    "test_every_field_of_a_request_has_a_name": head(
        lambda body: {**body, "": body["seed"]} if "seed" in body and "tools" in body else body
    ),
}
FAULTS: Mapping[tuple[str, str], Breakage] = {
    (FEATURE, "options are forgotten"): without("tools".__eq__),
    (FEATURE, "the schema is forgotten"): without("shape".__eq__),
    (FEATURE, "the choice is forgotten"): without("choice".__eq__),
    (FEATURE, "settings are forgotten"): without(set(WIRE_FIELDS.values()).__contains__),
    (FEATURE, "reasoning is forgotten"): lost(lambda part: part.get("type") == "thought"),
    (FEATURE, "signatures are forgotten"): parts(_known_of("thought", "type", "text")),
    (FEATURE, "media are forgotten"): lost(lambda part: part.get("type") in ("image", "audio", "document")),
    (FEATURE, "the names of media are forgotten"): parts(_known_of("image", "type", "url", "mime", "data")),
    (NESTED, "fields of texts are forgotten"): parts(_known_of("text", "type", "text")),
    (NESTED, "fields of calls are forgotten"): parts(_known_of("call", "type", "id", "name", "arguments")),
    (NESTED, "fields of results are forgotten"): parts(_known_of("result", "type", "id", "parts", "error")),
    (NESTED, "fields of schemas are forgotten"): reading(_known_of_schemas),
    (NESTED, "fields of turns are forgotten"): reading(
        lambda body: {**body, "turns": [{name: turn[name] for name in ("by", "parts")} for turn in body["turns"]]}
    ),
}
"""(Case, the fault) → an adapter that the case stops."""
UNTRIED = frozenset(f"{FEATURE}[{name}]" for name in FEATURES) - frozenset(BROKEN)
"""Rows that check nothing of acme, because it sends no such media, and no reasoning without a signature."""
