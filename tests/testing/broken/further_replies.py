"""Readers of answers that forget a field beside the messages."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from sabir.contract.scope import DecodeScope
from sabir.vocabulary.reply import Reply
from sabir_testing.families.further_replies import UNKNOWN_FIELD

from tests.testing.harness import Breakage, changed


def forgetful(own: Any, body: bytes, scope: DecodeScope, field: str) -> Reply:
    """A field of an answer is not read."""
    try:
        answer = json.loads(body)
    except ValueError:
        answer = None
    known = {name: each for name, each in answer.items() if name != field} if isinstance(answer, dict) else {}
    reply: Reply = own(json.dumps(known).encode() if known else body, scope)
    return reply


BROKEN: Mapping[str, Breakage] = {
    "test_an_answer_keeps_the_model_that_answered": changed(decode=partial(forgetful, field="model")),
    "test_an_answer_keeps_fields_that_nobody_knows": changed(decode=partial(forgetful, field=UNKNOWN_FIELD)),
}
