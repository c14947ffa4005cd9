"""Readers of answers that forget a field beside the messages."""

import importlib.util
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from sabir.authoring import InProcessConnection, InProcessResponse, WireRequest
from sabir.contract.scope import DecodeScope
from sabir.vocabulary.reply import Reply
from sabir_testing.families.further_replies import UNKNOWN_FIELD

from tests.testing.broken.changed_replies import both_ways, ending
from tests.testing.harness import TEMPLATE, Breakage, changed


def forgetful(own: Any, body: bytes, scope: DecodeScope, field: str) -> Reply:
    """A field of an answer is not read."""
    try:
        answer = json.loads(body)
    except ValueError:
        answer = None
    known = {name: each for name, each in answer.items() if name != field} if isinstance(answer, dict) else {}
    reply: Reply = own(json.dumps(known).encode() if known else body, scope)
    return reply


def empty_reason(reply: Reply) -> Mapping[str, Any]:
    """A missing finish reason is an empty text."""
    return {} if reply.raw_finish_reason else {"raw_finish_reason": ""}


def empty_details(reply: Reply) -> Mapping[str, Any]:
    """Without further fields of usage, the details are empty."""
    return {} if reply.usage.details else {"usage": reply.usage.model_copy(update={"details": {}})}


def talkative(reply: Reply) -> Mapping[str, Any]:
    """The details contain the id of the answer."""
    return {"details": {**(reply.details or {}), "id": reply.origin.response_id}}


def typed(reply: Reply) -> Mapping[str, Any]:
    """The details contain the type of the last event."""
    return {"details": {**(reply.details or {}), "type": "end"}}


def stateful(own: Any, body: bytes, scope: DecodeScope) -> Reply:
    """A call without further fields has an empty state."""
    reply: Reply = own(body, scope)
    messages = [
        message.model_copy(update={"payload": message.call.model_copy(update={"state": {}})})
        if message.call is not None and message.call.state is None
        else message
        for message in reply.messages
    ]
    return reply.model_copy(update={"messages": tuple(messages)})


def repetitive(own: Any, body: bytes, scope: DecodeScope) -> Reply:
    """The state of a call contains its arguments."""
    reply: Reply = own(body, scope)
    messages = [
        message.model_copy(
            update={"payload": message.call.model_copy(update={"state": {"a": message.call.raw_arguments}})}
        )
        if message.call is not None
        else message
        for message in reply.messages
    ]
    return reply.model_copy(update={"messages": tuple(messages)})


def identified(own: Any, body: bytes, scope: DecodeScope) -> Reply:
    """The state of a call contains its id, which the request has anyway."""
    reply: Reply = own(body, scope)
    messages = [
        message.model_copy(
            update={"payload": message.call.model_copy(update={"state": {"id": message.call.invocation_id}})}
        )
        if message.call is not None
        else message
        for message in reply.messages
    ]
    return reply.model_copy(update={"messages": tuple(messages)})


def nameless(base: Any) -> Any:
    """No header has the id of a request."""
    base.request_ids = ()
    return base


def closed(base: Any) -> Any:
    """Opaque parts are not sent back."""
    roles = base.tables.roles
    native = {**roles.native, "assistant": roles.native["assistant"] - {"opaque"}}
    return replace(base, tables=replace(base.tables, roles=replace(roles, native=native)))


def service_of_acme() -> Any:
    """Return the module with the template's fake service."""
    spec = importlib.util.spec_from_file_location("service_of_acme", TEMPLATE / "tests" / "service.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def asked(change: Callable[[dict[str, int]], dict[str, int]]) -> Breakage:
    """Acme whose service is a function in this process, with a change of the usage."""
    service = service_of_acme()

    def serve(request: WireRequest) -> InProcessResponse:
        answer = service.answer(json.loads(request.body))
        return InProcessResponse(200, [json.dumps({**answer, "usage": change(answer["usage"])}).encode()])

    return Breakage(connection=lambda base: InProcessConnection(serve), attributes={"asks_live": True})


TOKENS = "test_input_tokens_do_not_depend_on_the_answer"
LACKS = "test_what_an_answer_lacks_is_none"
DETAILS = "test_details_and_states_repeat_nothing"
BROKEN: Mapping[str, Breakage] = {
    "test_an_answer_keeps_the_model_that_answered": changed(decode=partial(forgetful, field="model")),
    "test_an_answer_keeps_fields_that_nobody_knows": changed(decode=partial(forgetful, field=UNKNOWN_FIELD)),
    "test_a_part_of_an_unknown_type_goes_back": Breakage(dialect=closed),
    LACKS: ending(empty_reason),
    DETAILS: ending(talkative),
    "test_the_header_with_the_id_of_a_request_is_named": Breakage(provider=nameless),
    "test_a_stream_has_no_further_details": ending(typed, "streamed"),
}
FAULTS: Mapping[tuple[str, str], Breakage] = {
    **both_ways(LACKS, "a missing finish reason is an empty text", empty_reason),
    **both_ways(LACKS, "missing usage is an empty object", empty_details),
    (LACKS, "the state of a call is an empty object"): changed(decode=stateful),
    **both_ways(DETAILS, "the id is repeated", talkative),
    (DETAILS, "the arguments of a call are in its state"): changed(decode=repetitive),
    (TOKENS, "every question has the same tokens"): asked(lambda usage: {**usage, "input": 5}),
    (TOKENS, "the tokens of the answer are counted"): asked(lambda usage: {**usage, "input": usage["output"]}),
    (DETAILS, "the id of a call is in its state"): changed(decode=identified),
}
"""(Case, the fault) → an adapter that the case stops."""
UNTRIED = frozenset({TOKENS})
