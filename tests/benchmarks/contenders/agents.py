"""A conversation's entries as sabir's messages, as an agent has them: what a model said is decoded from its answers.

    entry of an assistant's ──reply_that_says──▶ body ──dialect──▶ messages with their origin, state and argument text
    any other entry         ──message_of───────▶ message

Only the agents' conversation is made so; the plain one is of messages that nobody sent.
"""

from collections.abc import Iterable
from functools import cache

import sabir
from sabir.contract.scope import DecodeScope
from sabir.vocabulary.messages import Message
from sabir.vocabulary.settings import Target

from tests.benchmarks import work
from tests.benchmarks.contenders.messages import message_of
from tests.benchmarks.work import Entry, Given

ELSEWHERE = {"anthropic.messages": "openai.responses"}
"""Wire → the other provider's, whose replies stand between its own; Anthropic's for all that are not named."""


def messages_of(given: Given, target: Target) -> list[Message]:
    """The conversation, of messages never rendered before, for that target."""
    return [message for entry in work.entries_of(given) for message in agents_messages(given, target, entry)]


def agents_messages(given: Given, target: Target, entry: Entry) -> Iterable[Message]:
    """One entry: reasoning and what it led to are two messages where the wire has them apart."""
    if given.talk == work.AGENTS and entry["kind"] in ("call", "text"):
        return _replied(given.wire, target, entry)
    if "image" in entry:
        return (sabir.user(entry["text"], sabir.image(entry["image"])),)
    return (message_of(entry),)


def _replied(wire: str, target: Target, entry: Entry) -> Iterable[Message]:
    if "elsewhere" in entry:
        wire = ELSEWHERE.get(wire, "anthropic.messages")
        target, entry = _dialect(wire).target, {**entry, "reasoning": entry["elsewhere"]}
    found = _dialect(wire).dialect.decode(work.reply_that_says(wire, entry), DecodeScope(target)).messages
    last = found[-1]
    if last.call and last.call.invocation_id != entry["id"]:  # Google's calls have none of their own
        payload = last.call.model_copy(update={"invocation_id": entry["id"]})
        return (*found[:-1], last.model_copy(update={"payload": payload}))
    return found


@cache
def _dialect(wire: str) -> sabir.PureDialect:
    return sabir.dialect(wire)
