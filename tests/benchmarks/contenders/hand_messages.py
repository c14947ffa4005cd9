"""The limit's messages: frozen pydantic models of what the conversations hold, and nothing in general."""

from typing import Annotated, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field

from tests.benchmarks import work
from tests.benchmarks.work import Entry, Given


class Frozen(BaseModel):
    """Immutable."""

    model_config = ConfigDict(frozen=True)


class Thought(Frozen):
    """Reasoning, with its maker's seal; it goes back to its maker alone."""

    is_own: bool
    text: str
    seal: str


class Text(Frozen):
    """A text of a role, with the image beside it, what was thought before it, and the id of its item."""

    kind: Literal["text"] = "text"
    role: Literal["system", "user", "assistant"]
    text: str
    image: str = ""
    thought: Thought | None = None
    item: str = ""


class Call(Frozen):
    """A call; the arguments are JSON text, ready for every wire."""

    kind: Literal["call"] = "call"
    id: str
    name: str
    arguments: str
    thought: Thought | None = None
    item: str = ""


class Result(Frozen):
    """What came of a call."""

    kind: Literal["result"] = "result"
    id: str
    name: str
    text: str


Message = Annotated[Text | Call | Result, Field(discriminator="kind")]


class Reply(Frozen):
    """A whole answer."""

    messages: tuple[Message, ...]
    finish: str
    input_tokens: int
    output_tokens: int

    @property
    def text(self) -> str:
        """The texts, joined."""
        return "".join(message.text for message in self.messages if message.kind == "text")

    @property
    def calls(self) -> list[Call]:
        """The calls."""
        return [message for message in self.messages if message.kind == "call"]


def messages_of(given: Given) -> list[Text | Call | Result]:
    """The conversation of a task."""
    return [message_of(entry, has_items=given.talk == work.AGENTS) for entry in work.entries_of(given)]


def message_of(entry: Entry, *, has_items: bool = False) -> Text | Call | Result:
    """An entry of the conversation as a message; a server's own items have ids."""
    told = entry.get("reasoning") or entry.get("elsewhere")
    thought = Thought(is_own="reasoning" in entry, text=told["text"], seal=told["seal"]) if told else None
    has_items = has_items and "elsewhere" not in entry
    match entry["kind"]:
        case "call":
            arguments = orjson.dumps(entry["arguments"]).decode()
            item = f"fc_{entry['id']}" if has_items else ""
            return Call(id=entry["id"], name=entry["name"], arguments=arguments, thought=thought, item=item)
        case "result":
            return Result(id=entry["id"], name=entry["name"], text=entry["text"])
        case "text":
            item = "msg_bench01" if has_items else ""
            return Text(role="assistant", text=entry["text"], thought=thought, item=item)
        case role:
            return Text(role=role, text=entry["text"], image=entry.get("image", ""))
