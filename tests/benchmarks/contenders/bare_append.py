"""The limit of an append: core's own message, put last in a list, of which an adapter is given a copy."""

from collections.abc import Callable

import sabir
from sabir.vocabulary.messages import Message

from tests.benchmarks import work
from tests.benchmarks.contenders.doing import Growing
from tests.benchmarks.contenders.messages import messages_of
from tests.benchmarks.work import Given

REQUIREMENTS = ("{core}", "{roles}")


def append(given: Given) -> Growing[list[Message], list[Message]]:
    """One message more."""

    def add(history: list[Message]) -> list[Message]:
        history.append(sabir.user(work.reply_text()))
        return list(history)

    return Growing(lambda: messages_of(given.size), add)


TASKS: dict[str, Callable[[Given], Callable[[], object]]] = {"append": append}
EVIDENCE = {"append": lambda given, messages: {"count": len(messages), "text": messages[-1].text}}
