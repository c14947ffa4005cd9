"""A context with a model, an agent, two options, and a policy with a conversation of its own."""

import sabir
from sabir import Message
from sabir_runtime import BaseContext, BaseRunner, llm_policy, loop_policy
from sabir_session import Conversation

Names = list[str] | None
QUESTION = 'call search {"query": "rain"}\ncall broken {}'
OPTIONS = ["search", "broken"]


async def search(ctx: BaseContext, observations: list[Message], options: Names = None, *, query: str) -> list[Message]:
    return [sabir.assistant(f"pages on {query}")]


async def broken(ctx: BaseContext, observations: list[Message], options: Names = None) -> list[Message]:
    raise LookupError("the key is mellon")


async def talk(ctx: BaseContext, observations: list[Message], options: Names = None) -> list[Message]:
    def weather(city: str) -> str:
        return f"rain in {city}"

    question = 'call weather {"city": "Rome"}\ncall weather {"city": "Oslo"}'
    answer = await Conversation("echo:m", options=[weather]).ask(question)
    return [sabir.assistant(answer.text)]


class Desk(BaseContext):
    def __init__(self, runner: BaseRunner) -> None:
        super().__init__(runner)
        self.llm = self._bind(llm_policy("echo:m"))
        self.agent = self._bind(loop_policy("llm"))
        self.search = self._bind(search)
        self.broken = self._bind(broken)
        self.talk = self._bind(talk)
