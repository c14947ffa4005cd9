"""The conversations' entries as sabir's messages: core alone is needed for the plain one.

entry of an assistant's, agents' talk ──reply_that_says──▶ body ──dialect──▶ messages with origin, state and text
any other entry                       ──message_of───────▶ message
"""

from collections.abc import Iterable
from functools import cache

import sabir
from sabir import Message, OptionCallPayload, OptionResultPayload, Target
from sabir.authoring import DecodeScope

from benchmarks import answers, work
from benchmarks.work import Entry, Given

ELSEWHERE = {"anthropic.messages": "openai.responses"}
"""Wire → the other provider's, whose replies stand between its own; Anthropic's for all that are not named."""


def message_of(entry: Entry) -> Message:
    match entry["kind"]:
        case "system":
            return sabir.system(entry["text"])
        case "user":
            return sabir.user(entry["text"])
        case "text":
            return sabir.assistant(entry["text"])
        case "call":
            made = OptionCallPayload(invocation_id=entry["id"], option_name=entry["name"], arguments=entry["arguments"])
            return Message(policy="llm", payload=made)
    came = OptionResultPayload(invocation_id=entry["id"], option_name=entry["name"], result=entry["text"])
    return Message(policy=entry["name"], payload=came)


def plain_messages(size: int) -> list[Message]:
    """The plain conversation, of messages never rendered before."""
    return [message_of(entry) for entry in work.conversation(size)]


def messages_of(given: Given, target: Target) -> list[Message]:
    """The conversation of a task, of messages never rendered before, for that target."""
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
    found = _dialect(wire).dialect.decode(answers.reply_that_says(wire, entry), DecodeScope(target)).messages
    last = found[-1]
    if last.call and last.call.invocation_id != entry["id"]:  # Google's calls have none of their own
        payload = last.call.model_copy(update={"invocation_id": entry["id"]})
        return (*found[:-1], last.model_copy(update={"payload": payload}))
    return found


@cache
def _dialect(wire: str) -> sabir.PureDialect:
    return sabir.dialect(wire)
