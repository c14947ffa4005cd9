"""The conversation's entries as sabir's messages; core alone is needed."""

import sabir
from sabir.vocabulary.messages import Message, OptionCallPayload, OptionResultPayload

from tests.benchmarks import work
from tests.benchmarks.work import Entry


def message_of(entry: Entry) -> Message:
    """An entry of the conversation as a message."""
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


def messages_of(size: int) -> list[Message]:
    """The conversation, of messages never rendered before."""
    return [message_of(entry) for entry in work.conversation(size)]
