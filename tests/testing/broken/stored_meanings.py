"""Readers of stored requests that keep the bytes but lose the meaning."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from sabir import Loss, OpaquePart, PartsPayload, Settings, TextPart
from sabir.contract.dialect import DecodedHistory
from sabir.contract.scope import DecodeScope
from sabir.errors import HistoryInvalid
from sabir_testing.families.stored_requests import UNKNOWN_FIELD, UNKNOWN_VALUE

from tests.testing.broken.complete_requests import WIRE_FIELDS
from tests.testing.broken.laws import reading
from tests.testing.broken.stored_requests import FEATURE, Body, parts
from tests.testing.harness import Breakage, changed

LACKING = "test_a_stored_error_may_lack_a_field"
ORDER = "test_the_order_of_stored_fields_does_not_matter"
LOSSLESS = "test_a_stored_request_is_read_without_losses"
FIELDS = "test_unknown_fields_of_stored_media_are_kept"
TWICE = "test_no_stored_field_is_read_twice"
ORIGIN = "test_stored_messages_of_the_model_have_its_origin"
MESSAGE = "test_a_stored_message_is_read_as_what_it_is"
SETTING = "test_a_stored_setting_is_read_as_the_setting"


def unread(setting: str, field: str) -> Breakage:
    """A setting is read as a field that only this vendor knows, so that it is sent again, but to no other vendor."""

    def decode_history(own: Any, body: bytes, scope: DecodeScope) -> DecodedHistory:
        decoded: DecodedHistory = own(body, scope)
        sent = json.loads(body).get(field)
        if sent is None or UNKNOWN_FIELD.encode() in body:
            return decoded
        others = decoded.settings.model_copy(update={setting: None})
        return decoded.model_copy(update={"settings": Settings(extra_body={field: sent}).laid_over(others)})

    return changed(decode_history=decode_history)


def _with_parts(decoded: DecodedHistory, read: Callable[[Any], Any]) -> DecodedHistory:
    """Return the history with each part of its messages replaced by what `read` returns for it."""
    messages = tuple(
        message.model_copy(update={"payload": PartsPayload(parts=tuple(map(read, message.parts)))})
        if message.kind == "parts"
        else message
        for message in decoded.messages
    )
    return decoded.model_copy(update={"messages": messages})


def opaque_images(own: Any, body: bytes, scope: DecodeScope) -> DecodedHistory:
    """An image by URL is read as a part that only this vendor knows."""
    decoded: DecodedHistory = own(body, scope)
    sent = [part for turn in json.loads(body).get("turns", ()) for part in turn["parts"] if "url" in part]

    def read(part: Any) -> Any:
        same = [each for each in sent if part.kind == "media" and part.url == each["url"]]
        return OpaquePart(dialect=scope.target.dialect, block=same[0]) if same else part

    return _with_parts(decoded, read)


def opaque_refusals(own: Any, body: bytes, scope: DecodeScope) -> DecodedHistory:
    """A refusal is read as a part that only this vendor knows."""
    decoded: DecodedHistory = own(body, scope)

    def read(part: Any) -> Any:
        block = {"type": "refusal", "text": part.text} if part.kind == "refusal" else None
        return OpaquePart(dialect=scope.target.dialect, block=block) if block else part

    return _with_parts(decoded, read)


def unchecked(own: Any, body: bytes, scope: DecodeScope) -> DecodedHistory:
    """The vendor's own setting is read as a field that is sent unchecked."""
    decoded: DecodedHistory = own(body, scope)
    tier = json.loads(body).get("tier")
    others = decoded.settings.model_copy(update={"vendor_json": Settings().vendor_json})
    settings = Settings(extra_body={"tier": tier}).laid_over(others)
    return decoded.model_copy(update={"settings": settings}) if isinstance(tier, str) else decoded


def _without_name(part: Body) -> Body:
    if part.get("name") != UNKNOWN_VALUE:
        return part
    return {name: each for name, each in part.items() if name != "name"}


def optionless(own: Any, body: bytes, scope: DecodeScope) -> DecodedHistory:
    """Options are read as a field that only this vendor knows."""
    decoded: DecodedHistory = own(body, scope)
    settings = Settings(extra_body={"tools": json.loads(body).get("tools")}).laid_over(decoded.settings)
    return decoded.model_copy(update={"settings": settings, "options": ()}) if decoded.options else decoded


def dressed(own: Any, body: bytes, scope: DecodeScope) -> DecodedHistory:
    """A text as the result of a call is read as a part."""
    decoded: DecodedHistory = own(body, scope)

    def read(message: Any) -> Any:
        result = message.result
        if result is None or not isinstance(result.result, str):
            return message
        parts = (TextPart(text=result.result),)
        return message.model_copy(update={"payload": result.model_copy(update={"result": None, "parts": parts})})

    return decoded.model_copy(update={"messages": tuple(map(read, decoded.messages))})


def misattributed(own: Any, body: bytes, scope: DecodeScope) -> DecodedHistory:
    """The user's texts have the origin of the model."""
    decoded: DecodedHistory = own(body, scope)
    messages = [
        message.model_copy(update={"origin": scope.origin()}) if message.policy == "user" else message
        for message in decoded.messages
    ]
    return decoded.model_copy(update={"messages": tuple(messages)})


def unattributed(own: Any, body: bytes, scope: DecodeScope) -> DecodedHistory:
    """No message has an origin."""
    decoded: DecodedHistory = own(body, scope)
    messages = (message.model_copy(update={"origin": None}) for message in decoded.messages)
    return decoded.model_copy(update={"messages": tuple(messages)})


def sequential(own: Any, body: bytes, scope: DecodeScope) -> DecodedHistory:
    """Instructions that come after the turns are read as a message after them."""
    decoded: DecodedHistory = own(body, scope)
    names = list(json.loads(body))
    if "instructions" not in names or names.index("instructions") < names.index("turns"):
        return decoded
    messages = sorted(decoded.messages, key=lambda message: message.policy == "system")
    return decoded.model_copy(update={"messages": tuple(messages)})


def uninstructed(own: Any, body: bytes, scope: DecodeScope) -> DecodedHistory:
    """The leading system text is read as a field that only this vendor knows."""
    decoded: DecodedHistory = own(body, scope)
    request = json.loads(body)
    if not isinstance(request.get("instructions"), str) or UNKNOWN_FIELD.encode() in body:
        return decoded
    messages = tuple(message for message in decoded.messages if message.policy != "system")
    settings = Settings(extra_body={"instructions": request["instructions"]}).laid_over(decoded.settings)
    return decoded.model_copy(update={"messages": messages, "settings": settings})


def late_choice(own: Any, body: bytes, scope: DecodeScope) -> DecodedHistory:
    """The choice of an option before the options is read as a field that only this vendor knows."""
    decoded: DecodedHistory = own(body, scope)
    request = json.loads(body)
    names = list(request)
    if not isinstance(request.get("choice"), dict) or names.index("choice") > names.index("tools"):
        return decoded
    others = decoded.settings.model_copy(update={"option_choice": None})
    settings = Settings(extra_body={"choice": request["choice"]}).laid_over(others)
    return decoded.model_copy(update={"settings": settings})


def doubled(own: Any, body: bytes, scope: DecodeScope) -> DecodedHistory:
    """The options are also read as a field that only this vendor knows."""
    decoded: DecodedHistory = own(body, scope)
    tools = json.loads(body).get("tools")
    settings = Settings(extra_body={"tools": tools}).laid_over(decoded.settings)
    return decoded.model_copy(update={"settings": settings}) if tools else decoded


def nameless_choice(own: Any, body: bytes, scope: DecodeScope) -> DecodedHistory:
    """The choice of one option is read as a field that only this vendor knows."""
    decoded: DecodedHistory = own(body, scope)
    choice = json.loads(body).get("choice")
    if not isinstance(choice, dict):
        return decoded
    others = decoded.settings.model_copy(update={"option_choice": None})
    return decoded.model_copy(update={"settings": Settings(extra_body={"choice": choice}).laid_over(others)})


def demanding(field: str) -> Breakage:
    """An error of a call without this field is refused."""

    def decode_history(own: Any, body: bytes, scope: DecodeScope) -> DecodedHistory:
        parts = [part for turn in json.loads(body).get("turns", ()) for part in turn["parts"]]
        errors = [part.get("error") for part in parts if isinstance(part, dict)]
        for error in (each for each in errors if isinstance(each, dict)):
            if field not in error and "kit-not-now" in error.values():
                raise HistoryInvalid(f"an error lacks {field}")
        decoded: DecodedHistory = own(body, scope)
        return decoded

    return changed(decode_history=decode_history)


def speechless(own: Any, body: bytes, scope: DecodeScope) -> DecodedHistory:
    """An error of a call without a message is read with an empty one."""
    decoded: DecodedHistory = own(body, scope)

    def read(message: Any) -> Any:
        is_default = message.result is not None and message.result.error_message == "failed"
        payload = message.result.model_copy(update={"error_message": ""}) if is_default else message.payload
        return message.model_copy(update={"payload": payload})

    return decoded.model_copy(update={"messages": tuple(map(read, decoded.messages))})


def alarmed(own: Any, body: bytes, scope: DecodeScope) -> DecodedHistory:
    """The choice of an option is reported as unknown, although it is read."""
    decoded: DecodedHistory = own(body, scope)
    if "choice" not in json.loads(body):
        return decoded
    loss = Loss(kind="withheld", path="choice", reason="the field is unknown")
    return decoded.model_copy(update={"losses": (*decoded.losses, loss)})


def emptied(own: Any, body: bytes, scope: DecodeScope) -> DecodedHistory:
    """A turn with nothing but results is reported as an empty message of the user, if it is the last."""
    decoded: DecodedHistory = own(body, scope)
    last = json.loads(body).get("turns", [{}])[-1]
    loss = Loss(kind="dropped", path="turns[-1]", reason="the message is empty")
    return decoded.model_copy(update={"losses": (loss,)}) if last.get("by") == "option" else decoded


def flattened(own: Any, body: bytes, scope: DecodeScope) -> DecodedHistory:
    """A result of a call with an image is refused."""
    parts = [part for turn in json.loads(body).get("turns", ()) if turn["by"] == "option" for part in turn["parts"]]
    if any(each.get("type") == "image" for part in parts for each in part.get("parts", ())):
        raise HistoryInvalid("a result is not a text")
    decoded: DecodedHistory = own(body, scope)
    return decoded


def _without_unknown(part: Body) -> Body:
    if part.get("type") not in ("image", "audio", "document"):
        return part
    return {name: each for name, each in part.items() if name != UNKNOWN_FIELD}


def spelt(body: Body) -> Body:
    """A text in place of the parts of a turn is read letter by letter."""
    turns = [
        {**turn, "parts": [{"type": "text", "text": letter} for letter in turn["parts"]]}
        if isinstance(turn, dict) and isinstance(turn.get("parts"), str)
        else turn
        for turn in body.get("turns", ())
    ]
    return {**body, "turns": turns} if turns else body


BROKEN: Mapping[str, Breakage] = {
    **{f"{SETTING}[{name}]": unread(name, field) for name, field in WIRE_FIELDS.items() if name != "reasoning_effort"},
    MESSAGE: changed(decode_history=opaque_images),
    ORIGIN: changed(decode_history=misattributed),
    ORDER: changed(decode_history=sequential),
    TWICE: changed(decode_history=doubled),
    f"{LACKING}[error_type]": demanding("type"),
    f"{LACKING}[error_message]": changed(decode_history=speechless),
    f"{LACKING}[retryable]": demanding("retryable"),
    LOSSLESS: changed(decode_history=alarmed),
    "test_a_stored_vendor_setting_is_read_as_the_setting": changed(decode_history=unchecked),
    FIELDS: parts(_without_unknown),
    "test_a_text_in_place_of_a_list_is_not_read": reading(spelt),
}
FAULTS: Mapping[tuple[str, str], Breakage] = {
    (MESSAGE, "options are an unknown field"): changed(decode_history=optionless),
    (MESSAGE, "a refusal is a part of this vendor"): changed(decode_history=opaque_refusals),
    (FIELDS, "the names of media are forgotten"): parts(_without_name),
    (MESSAGE, "a text of a result is a part"): changed(decode_history=dressed),
    (SETTING, "the choice of one option is an unknown field"): changed(decode_history=nameless_choice),
    (ORDER, "a choice before the options is an unknown field"): changed(decode_history=late_choice),
    (FEATURE, "a result with an image is refused"): changed(decode_history=flattened),
    (LOSSLESS, "a turn of results is an empty message"): changed(decode_history=emptied),
    (ORIGIN, "no message has one"): changed(decode_history=unattributed),
    (MESSAGE, "instructions are an unknown field"): changed(decode_history=uninstructed),
}
"""(Case, the fault) → an adapter that the case stops."""
