"""Further cases of answers: the model that answered, fields that nobody knows, and fields that are missing.

recorded response with one changed or added field ──decode──▶ the reply has the text of that field
recorded response without one of its fields ────────decode──▶ None, not "" or {}; no copy of a text in the details
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from sabir import Message, OpaquePart, OptionResultBuilder, Reply, Settings, TextPart
from sabir.authoring import JSONValue

from sabir_testing.families.changed_replies import UNHEARD_OF
from sabir_testing.families.stored_requests import UNKNOWN_FIELD
from sabir_testing.histories.samples import message_by
from sabir_testing.kit.asking import STREAMED, WHOLE, QuestionResult
from sabir_testing.kit.changed_answers import DELETED, ChangeableAnswer, Changes, Place, changeable_answers
from sabir_testing.kit.failures import expect
from sabir_testing.kit.service import AnswerCases, Service
from sabir_testing.kit.suite import AdapterUnderTest, since_api
from sabir_testing.reading import JSONPath, as_json, member_at, objects, paths_in, strings, walk, without_member

STRANGE = "kit-strange-text"
"""The name of a model that nobody has, and the value of the unknown field."""
MODEL_FIELDS = ("model", "modelVersion", "model_version")
"""Names of the field with which answers of known APIs report their model."""

REQUEST_ID = re.compile(r"(^|-)request(-?id)?$")
"""Names of headers that contain the id of a request."""


@since_api(2)
class FurtherReplyCases(AnswerCases):
    """The test cases of the family `replies` about fields beside the messages."""

    family = "replies"

    def test_an_answer_keeps_the_model_that_answered(self, service: Service) -> None:
        """If a complete response names its model in a field `model` or `modelVersion`, and this is not the requested
        model, the origin's `reported_model` is this name. This is tested with another name in the recorded responses.
        """
        subject = service.subject
        for answer, body in _complete_answers(service):
            for field in MODEL_FIELDS:
                if isinstance(body.get(field), str):
                    changed = {**body, field: STRANGE}
                    reply = subject.dialect.decode(json.dumps(changed).encode(), subject.scope())
                    reported = reply.origin.reported_model
                    what = f"reply.origin.reported_model of {answer} is {reported!r}, if its {field!r} is {STRANGE!r}"
                    expect(reported == STRANGE, f"{what}; pass it to scope.origin", details={"the response": changed})

    def test_an_answer_keeps_fields_that_nobody_knows(self, service: Service) -> None:
        """An unknown field of a complete response is in the reply, for example in `details`, so that programs can use
        what the service added after the plugin was written.
        """
        subject = service.subject
        for answer, body in _complete_answers(service):
            changed = {**body, UNKNOWN_FIELD: STRANGE}
            reply = subject.dialect.decode(json.dumps(changed).encode(), subject.scope())
            what = f"the unknown field {UNKNOWN_FIELD!r} of {answer} is not in the reply; add it to the details"
            is_kept = STRANGE in reply.model_dump_json()
            expect(is_kept, f"{what} of the reply", details={"the response": changed})

    def test_a_part_of_an_unknown_type_goes_back(self, service: Service) -> None:
        """If a part with a type that nobody knows is decoded as an opaque part, the next request contains it (law 3).
        This is tested with recorded answers, in which the type of a text is replaced.
        """
        for answer in changeable_answers(service):
            for place in answer.places_of(answer.reply.text):
                holder = member_at(answer.documents[place.document], place.path[:-1])
                for name, kind in holder.items() if isinstance(holder, dict) else ():
                    if name != place.name and isinstance(kind, str):
                        changes = {Place(place.document, (*place.path[:-1], name)): UNHEARD_OF}
                        _check_opaque_part(service.subject, answer, changes)

    def test_what_an_answer_lacks_is_none(self, service: Service) -> None:
        """If a field of an answer is missing, what is read from it is None, or the answer is refused: no state of a
        part or call is {}, no finish reason, id or name of a model is "", and no details are {}. An empty state would
        be reported as a loss whenever another model continues the conversation.
        """
        for answer in changeable_answers(service):
            for place in _fields(answer):
                if (reply := answer.decode({place: DELETED}).reply) is not None:
                    where = f"{answer.label} without the field {place.name!r}"
                    _check_nothing_is_empty(answer, reply, where, {place: DELETED})

    def test_details_and_states_repeat_nothing(self, service: Service) -> None:
        """The details of a reply contain fields that have no place elsewhere in the reply: not its id, its model, its
        finish reason, its usage or its texts. The state of a text does not contain the text, and the state of a call
        does not contain its name or arguments, which would be sent twice. It does not contain its id either, unless
        the request is another one without it.
        """
        for answer in changeable_answers(service):
            reply = answer.reply
            model = reply.origin.reported_model or reply.origin.model
            own = {"id": reply.origin.response_id, "finish reason": reply.raw_finish_reason, "text": reply.text}
            own["model"] = model
            details = set(strings(reply.details))
            for name, text in own.items():
                what = f"the details of {answer.label} repeat the reply's {name} {text!r}"
                expect(not text or text not in details, f"{what}; leave the field out of the details")
            for kind, state, content in _stated(reply):
                is_repeated = content in [*strings(state), *objects(state)]
                what = f"the state of a part of the kind {kind!r} of {answer.label} repeats its content {content!r}"
                expect(not is_repeated, f"{what}; leave the field out of the state")
            for call in reply.option_calls:
                _check_id_in_state(service.subject, call, answer.label)
            is_repeated = reply.usage.details and reply.usage.details in objects(reply.details)
            expect(not is_repeated, f"the details of {answer.label} repeat the reply's usage; leave it out")

    def test_input_tokens_do_not_depend_on_the_answer(self, service: Service) -> None:
        """A limit of the answer does not change `usage.input_tokens`, and a longer question has more of them. This is
        tested for services on this machine (`asks_live`), which are asked a question of four words with a low and a
        high limit, and a longer one.
        """
        subject = service.subject
        if not service.suite.asks_live or service.refused_need("max_tokens", WHOLE):
            return
        history = [message_by("user", "One two three four.")]
        limits = (1, 16)
        replies = [subject.adapter.complete_sync(history, settings=Settings(max_output_tokens=each)) for each in limits]
        counts = [reply.usage.input_tokens for reply in replies]
        what = f"usage.input_tokens of one question is {counts[0]} with the limit {limits[0]}, and {counts[1]} with the"
        expect(counts[0] == counts[1], f"{what} limit {limits[1]}; count the tokens of the question")
        longer = subject.adapter.complete_sync([message_by("user", "One two three four. " * 9)]).usage.input_tokens
        what = f"usage.input_tokens is {counts[0]} for a question, and {longer} for one that is nine times as long"
        expect(None in (longer, counts[0]) or (longer or 0) > (counts[0] or 0), f"{what}; count all its tokens")

    def test_a_stream_has_no_further_details(self, service: Service) -> None:
        """With `answers_repeat`, the details of a streamed reply have no name that the details of the complete reply to
        the same question lack, such as the field with the type of an event.
        """
        if not service.suite.answers_repeat or service.refused_need("text", STREAMED):
            return
        complete = {answer.name: answer.reply.details or {} for answer in service.answers(WHOLE)}
        for answer in service.answers(STREAMED):
            further = sorted((answer.reply.details or {}).keys() - complete.get(answer.name, {}).keys())
            is_checked = answer.name in complete
            what = f"the details of {answer} have the fields {', '.join(further)}, which those of the complete reply"
            expect(not (is_checked and further), f"{what} lack; leave them out", details=answer.details)

    def test_the_header_with_the_id_of_a_request_is_named(self, service: Service) -> None:
        """If recorded responses have a header such as `x-request-id`, `request-id` or `x-acme-request`,
        `Provider.request_ids` names it, so that errors and replies have the id that the vendor's support asks for.
        """
        names = service.subject.provider.request_ids
        for answer in service.answers(WHOLE):
            candidates = [name for name in answer.exchanges[-1].headers if REQUEST_ID.search(name)]
            is_named = not candidates or set(candidates) & set(names)
            what = f"{answer} has the header {' and '.join(candidates)}, but Provider.request_ids is {tuple(names)}"
            expect(is_named, f"{what}; add the header's name")


def _check_opaque_part(subject: AdapterUnderTest, answer: ChangeableAnswer, changes: Changes) -> None:
    """Raise ConformanceFailure if the changed answer has an opaque part that the next request does not contain."""
    reply = answer.decode(changes).reply
    parts = [part for message in reply.messages for part in message.parts] if reply else []
    if reply is None or not any(UNHEARD_OF in strings(part.block) for part in parts if isinstance(part, OpaquePart)):
        return
    history = [message_by("user", "And?"), *reply.messages, message_by("user", "Go on.")]
    request = subject.request_for(history)
    what = f"the part of the unknown type {UNHEARD_OF!r} of {answer.label} is decoded as an opaque part, but the next"
    remedy = "request does not contain it; accept opaque parts in Roles.native, and send their block"
    request.expect(request.contains(UNHEARD_OF), f"{what} {remedy}", details=answer.details(changes))


def _check_id_in_state(subject: AdapterUnderTest, message: Message, where: str) -> None:
    """Raise ConformanceFailure if the state of a call contains the call's id, and the request is the same without."""
    call = message.call
    assert call is not None
    question, answered = message_by("user", "And?"), OptionResultBuilder.response_to(message).success("kit-bright")
    for path in [leaf.path for leaf in walk(call.state) if leaf.value == call.invocation_id and leaf.path]:
        rest = without_member(call.state, path) or None
        bare = message.model_copy(update={"payload": call.model_copy(update={"state": rest})})
        requests = (subject.try_render([question, each, answered]) for each in (message, bare))
        one, other = (json.loads(request.body or b"null") for request in requests)
        what = f"the state of a call of {where} repeats its id {call.invocation_id!r}, which changes no request; leave"
        expect(one != other, f"{what} the id out of the state", details={"the state": call.state})


def _stated(reply: Reply) -> Iterator[tuple[str, JSONValue, JSONValue]]:
    """Yield the kind, the state and a piece of the content of each text and call with state."""
    for message in reply.messages:
        if (call := message.call) is not None and call.state is not None:
            for content in (call.option_name, call.raw_arguments, call.arguments):
                yield "option_call", call.state, content
        for part in message.parts:
            if isinstance(part, TextPart) and part.text and part.state is not None:
                yield "text", part.state, part.text


def _fields(answer: ChangeableAnswer) -> Iterator[Place]:
    """Yield the places of the fields of an answer's objects; of equal paths in several events, the first place."""
    tried = set[JSONPath]()
    for number, document in enumerate(answer.documents):
        for path in paths_in(document):
            if path and isinstance(path[-1], str) and path not in tried:
                tried.add(path)
                yield Place(number, path)


def _check_nothing_is_empty(answer: ChangeableAnswer, reply: Reply, where: str, changes: Any) -> None:
    stated = [part for message in reply.messages for part in (message.call, *message.parts) if part is not None]
    facts = {
        **{f"the state of the {part.kind}": getattr(part, "state", None) for part in stated},
        "raw_finish_reason": reply.raw_finish_reason,
        "origin.response_id": reply.origin.response_id,
        "origin.reported_model": reply.origin.reported_model,
        "details": reply.details,
        "usage.details": reply.usage.details,
    }
    for name, fact in facts.items():
        is_empty = fact is not None and not fact
        what = f"{name} of {where} is {fact!r}; expected None, or an error"
        expect(not is_empty, what, details=answer.details(changes))


def _complete_answers(service: Service) -> Iterator[tuple[QuestionResult, dict[str, Any]]]:
    """Yield the complete answers whose body is a JSON object, each with this object."""
    for answer in service.answers(WHOLE):
        body = as_json(answer.exchanges[-1].response_body)
        if isinstance(body, dict):
            yield answer, body
