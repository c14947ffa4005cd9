"""sabir's messages with roles, in an environment of their own: importing sabir alone is measured without jinja2."""

from collections.abc import Callable

from sabir.vocabulary.messages import Message
from sabir_roles import MessageManager

from tests.benchmarks import work
from tests.benchmarks.contenders.doing import Growing
from tests.benchmarks.contenders.messages import messages_of
from tests.benchmarks.work import Given

REQUIREMENTS = ("{core}", "{roles}")


def append(given: Given) -> Growing[MessageManager, list[Message]]:
    """An instruction is added to a manager of that conversation, which then gives its messages."""

    def begin() -> MessageManager:
        manager = MessageManager.from_messages(messages_of(given.size))
        manager.to_messages()
        return manager

    def add(manager: MessageManager) -> list[Message]:
        manager.add_message(instruction=work.reply_text())
        return manager.to_messages()

    return Growing(begin, add)


TASKS: dict[str, Callable[[Given], Callable[[], object]]] = {"append": append}
EVIDENCE = {"append": lambda given, messages: {"count": len(messages), "text": messages[-1].text}}
