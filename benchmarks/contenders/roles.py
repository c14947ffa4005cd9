"""Appending: to a manager of messages with roles, beside core's own message put last in a list.

In an environment of its own: importing sabir alone is measured without jinja2.
"""

from functools import partial

import sabir
from sabir import Message
from sabir_roles import MessageManager

from benchmarks import answers
from benchmarks.contenders.doing import Contender, Growing
from benchmarks.contenders.messages import plain_messages
from benchmarks.work import Given

REQUIREMENTS = ("{core}", "{roles}")


def own(given: Given) -> Growing:
    """An instruction is added to a manager of that conversation, which then gives its messages."""

    def begin() -> MessageManager:
        manager = MessageManager.from_messages(plain_messages(given.size))
        manager.to_messages()
        return manager

    def add(manager: MessageManager) -> list[Message]:
        manager.add_message(instruction=answers.reply_text())
        return manager.to_messages()

    return Growing(begin, add)


def bare(given: Given) -> Growing:
    """One message more in a list, of which an adapter is given a copy."""

    def add(history: list[Message]) -> list[Message]:
        history.append(sabir.user(answers.reply_text()))
        return list(history)

    return Growing(partial(plain_messages, given.size), add)


EVIDENCE = {"append": lambda given, messages: {"count": len(messages), "text": messages[-1].text}}
CONTENDERS = {
    "sabir_roles": Contender({"append": own}, EVIDENCE),
    "bare_append": Contender({"append": bare}, EVIDENCE),
}
