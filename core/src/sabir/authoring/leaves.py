"""What the leaf functions of every dialect share: calls and results as wires have them, and losses of single pieces.

call     call_state       what its maker wants back with it
         arguments_text   the text as it came to its own dialect, canonical elsewhere
         arguments_value  the object, for wires that take one
result   result_text · error_text   for wires that take text
         result_value     any JSON value, for wires that take one
piece    state_of         what its maker wants back with it
         hints_of         the vendor hints that the wire takes with a medium, or with an option
         lose             a loss that names the part
         stand_in         what stands for a medium that came from elsewhere
request  read_vendor · neutral_fields · take_setting · declare · name_choice

Values are plain dicts, lists and strings, which the serialiser writes faster than the immutable views of messages.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from pydantic import BaseModel

from sabir.authoring.bodies import Fields, fields
from sabir.base.errors import SettingsInvalid
from sabir.base.losses import LossKind
from sabir.base.values import FrozenDict, JSONValue, encode_json, parse_json
from sabir.contract.scope import Entry, LossLog, RequestScope, TurnScope
from sabir.rendering.pieces import placeholder
from sabir.vocabulary.hints import read_section
from sabir.vocabulary.messages import Message, OptionCallPayload, OptionResultPayload
from sabir.vocabulary.parts import KnownPart, MediaPart, Part, Stateful

if TYPE_CHECKING:
    from sabir.options.option import Option

_NO_FIELDS: Fields = FrozenDict()
NO_MEDIA = "(its media are not shown)"


def state_of(stated: Stateful, entry: Entry) -> Fields:
    """The state of a part or of a call, where it goes back to its maker; else an empty object."""
    state = stated.state_json if entry.keeps_state else None
    return _NO_FIELDS if state is None else fields(parse_json(state))


def call_state(entry: Entry | None) -> Fields:
    """The state of the call in an entry, where it goes back to its maker; else, and for none, an empty object."""
    call = entry.message.payload if entry else None
    return state_of(call, entry) if entry and isinstance(call, OptionCallPayload) else _NO_FIELDS


def hints_of(piece: "MediaPart | Option", scope: TurnScope | RequestScope) -> Fields:
    """The hints of a medium or an option, as the model in the dialect's tables validated them; those that are set."""
    text = piece.vendor_json
    return _NO_FIELDS if text is None else fields(fields(parse_json(text)).get(scope.target.provider))


def arguments_text(entry: Entry, scope: TurnScope, losses: LossLog) -> str:
    """The argument text of a call: as it came to its own dialect, canonical elsewhere."""
    message, call = entry.message, entry.message.payload
    assert isinstance(call, OptionCallPayload)
    # Empty text, which some models give for no arguments, is refused on the way back: it becomes "{}".
    raw = call.raw_arguments
    if raw and (entry.keeps_state or (message.origin and message.origin.dialect == scope.target.dialect)):
        return raw
    if call.invalid_arguments:
        _lose_text(call, message, losses)
    canonical: str = call.arguments_json[:]
    return canonical


def arguments_value(entry: Entry, losses: LossLog) -> Fields:
    """The arguments of a call as an object; those that came as a text that is none are lost."""
    call = entry.message.payload
    assert isinstance(call, OptionCallPayload)
    if call.invalid_arguments:
        _lose_text(call, entry.message, losses)
    arguments: Fields = parse_json(call.arguments_json)
    return arguments


def _lose_text(call: OptionCallPayload, message: Message, losses: LossLog) -> None:
    if call.raw_arguments:
        reason = "the arguments' text is no JSON object; only the dialect that it came from takes it back"
        losses.add("rewritten", reason, message=message, path="payload.arguments")


def result_text(entry: Entry, result: OptionResultPayload, losses: LossLog) -> str:
    """A result of which no part is left, as text; one whose media were all left out says so, for it is not null."""
    if result.parts and not entry.pieces and any(isinstance(part, MediaPart) for part in result.parts):
        losses.add("synthesized", "no part is left; a text says so", message=entry.message, path="payload.result")
        return NO_MEDIA
    value = result_value(result)
    # Empty content is none; an empty result is the JSON text of what it is.
    return value if isinstance(value, str) and value else result.result_json[:]


def result_value(result: OptionResultPayload) -> JSONValue:
    """What an option returned."""
    text: str = result.result_json[:]
    return text[1:-1] if text[0] == '"' and "\\" not in text else parse_json(text)


def error_text(result: OptionResultPayload) -> str:
    """An error result as text that says that it is one."""
    error = {"type": result.error_type, "message": result.error_message, "retryable": result.retryable}
    return encode_json({"error": {name: value for name, value in error.items() if value is not None}})


def lose(losses: LossLog, kind: LossKind, reason: str, piece: KnownPart, entry: Entry, within: str = "") -> None:
    """Write down the loss of one piece of a message; `within` is the path inside it."""
    parts = entry.message.parts
    found = [index for index, part in enumerate(parts) if part is piece] or [
        index for index, part in enumerate(parts) if _is_left_of(part, piece)
    ]
    losses.add(kind, reason, message=entry.message, path=f"parts[{found[0]}]{within}" if found else "")


def _is_left_of(part: Part, piece: KnownPart) -> bool:
    """Whether a piece is that part but for its hints, of which a target takes its own."""
    both = part.kind == piece.kind == "media"
    return both and {**vars(part), "vendor_json": None} == {**vars(piece), "vendor_json": None}


def stand_in(reason: str, piece: MediaPart, entry: Entry, scope: TurnScope, losses: LossLog) -> str:
    """The text that stands for a medium that a wire does not take there; empty where it shall be left out."""
    if scope.unsupported_media == "drop":
        lose(losses, "dropped", reason, piece, entry)
        return ""
    lose(losses, "downgraded", f"{reason}; a placeholder names it", piece, entry)
    return placeholder(piece)


Vendor = TypeVar("Vendor", bound=BaseModel)


def read_vendor(model: type[Vendor], scope: RequestScope) -> dict[str, Any]:
    """The vendor settings that are set, as wire fields; SettingsInvalid names one that the dialect does not have."""
    if not scope.vendor:
        return {}
    where = f"vendor[{scope.target.provider!r}] for {scope.target.dialect}"
    return read_section(model, scope.vendor, where, "; all else: extra_body")


def take_setting(scope: RequestScope, setting: str) -> Any:
    """A wire setting's value, of the type of the field in Settings; None, and a loss, where the model refuses it."""
    value, info = scope.settings.take(setting), scope.model_info
    cannot_reason = setting == "reasoning_effort" and info.reasoning is False
    if value is not None and (cannot_reason or setting in info.rejects):
        refuse_setting(scope, setting)
        return None
    return list(value) if isinstance(value, tuple) else value


def refuse_setting(scope: RequestScope, setting: str) -> None:
    """Write down that the model refuses a setting."""
    scope.losses.add("dropped", f"{scope.target.model} refuses it", path=f"settings.{setting}")


Take: TypeAlias = Callable[[RequestScope, str], Any]


def neutral_fields(
    scope: RequestScope,
    names: Mapping[str, str],
    *,
    absent: Sequence[str] = (),
    stops: int = 0,
    take: Take = take_setting,
) -> dict[str, Any]:
    """The settings that the wire takes as they are, under their `names` there; losses for what it has no field for.

    Of stop texts it takes the first `stops`, all where that is 0.
    """
    for setting in absent:
        if scope.settings.take(setting) is not None:
            scope.losses.add("dropped", f"{scope.target.dialect} has no field for it", path=f"settings.{setting}")
    found = {name: value for setting, name in names.items() if (value := take(scope, setting)) is not None}
    stop = names.get("stop", "")
    for index in range(stops, len(found.get(stop, ()))) if stops else ():
        scope.losses.add("dropped", f"the wire takes {stops} stop texts", path=f"settings.stop[{index}]")
    return found | {stop: found[stop][:stops]} if stops and stop in found else found


def declare(option: "Option", scope: RequestScope) -> dict[str, Any]:
    """An option's name on the wire and, where it has one, its description."""
    found = {"name": scope.option_names[option.name]}
    return found | {"description": option.description} if option.description else found


def name_choice(choice: str, scope: RequestScope) -> str:
    """The wire name of the option that `option_choice` names; SettingsInvalid for one that is not offered."""
    if choice in scope.option_names:
        return scope.option_names[choice]
    raise not_offered(choice, scope)


def not_offered(choice: str, scope: RequestScope) -> SettingsInvalid:
    """The error for a choice of an option that is not among those offered."""
    offered = ", ".join(scope.option_names) or "none"
    return SettingsInvalid(f"option_choice names {choice!r}, which is not offered; offered are: {offered}")
