"""Further cases of complete answers: the model that answered, and fields that nobody knows.

recorded response with one changed or added field ──decode──▶ the reply has the text of that field
"""

import json
from collections.abc import Iterator
from typing import Any

from sabir_testing.families.stored_requests import UNKNOWN_FIELD
from sabir_testing.kit.asking import WHOLE, QuestionResult
from sabir_testing.kit.failures import expect
from sabir_testing.kit.service import AnswerCases, Service
from sabir_testing.kit.suite import since_api
from sabir_testing.reading import as_json

STRANGE = "kit-strange-text"
"""The name of a model that nobody has, and the value of the unknown field."""
MODEL_FIELDS = ("model", "modelVersion", "model_version")
"""Names of the field with which answers of known APIs report their model."""


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


def _complete_answers(service: Service) -> Iterator[tuple[QuestionResult, dict[str, Any]]]:
    """Yield the complete answers whose body is a JSON object, each with this object."""
    for answer in service.answers(WHOLE):
        body = as_json(answer.exchanges[-1].response_body)
        if isinstance(body, dict):
            yield answer, body
