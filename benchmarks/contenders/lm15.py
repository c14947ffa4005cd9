"""lm15: one provider class for each wire, on the standard library and a transport of its own.

A history is a tuple of `Message`s; each call makes a `Request` of it, whose instructions are a field of its own. The
in-process transport is an object with the one method that lm15 asks of a transport. `render` is `build_request`, and
`decode` is `parse_response`: both are public methods.
"""

from collections.abc import Callable
from typing import Any

import lm15
from lm15.providers.base import HttpResponse
from lm15.transports import TransportRequest, TransportResponse

from benchmarks import answers, work
from benchmarks.contenders.doing import CALLED, CREATED, Caller, InProcess, counted, held_by, picture
from benchmarks.work import Entry, Given

REQUIREMENTS = ("lm15>=1.5",)
HEADERS = [("content-type", "application/json")]
PROVIDERS = {
    "openai.chat": (lm15.OpenAIChatLM, lm15.AsyncOpenAIChatLM, "/v1", "openai"),
    "openai.responses": (lm15.OpenAILM, lm15.AsyncOpenAILM, "/v1", "openai"),
    "anthropic.messages": (lm15.AnthropicLM, lm15.AsyncAnthropicLM, "/v1", "anthropic"),
    "google.generate_content": (lm15.GeminiLM, lm15.AsyncGeminiLM, "/v1beta", "gemini"),
}
"""Wire → the sync and the async class, what the base URL ends with, and the name of the maker of signed state."""
TOOLS = tuple(lm15.FunctionTool(**option) for option in work.OPTIONS)


class Direct(InProcess):
    """Answers in the process as a transport of lm15's."""

    def stream(self, request: TransportRequest) -> TransportResponse:
        self.body, chunks = request.body, iter((next(self.answers),))
        return TransportResponse(
            status=200, reason="OK", headers=HEADERS, http_version="HTTP/1.1", chunks=chunks, release=lambda _: None
        )


class LM15(Caller):
    hoists = True
    has_agents_loop = True

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self.sync_class, self.async_class, self.path, self.maker = PROVIDERS[given.wire]
        self.system = work.conversation(1)[0]["text"]
        bound = {"max_tokens": work.MAX_TOKENS} if given.wire == "anthropic.messages" else {}
        self.config = lm15.Config(**bound)

    def in_process(self, *answers: bytes) -> Direct:
        return Direct(None, *answers)

    def connect(self, transport: Direct | None = None) -> Any:
        url = (self.given.url or "http://in.process") + self.path
        return self.sync_class(
            api_key="none", base_url=url, **({"transport": transport} if transport and not self.given.url else {})
        )

    def connect_async(self) -> Any:
        return self.async_class(api_key="none", base_url=self.given.url + self.path)

    def request(self, messages: list[Any]) -> lm15.Request:
        return lm15.Request(
            model=self.given.model, messages=messages, system=self.system, tools=TOOLS, config=self.config
        )

    def ask(self, client: Any, messages: list[Any]) -> lm15.Response:
        return client.complete(self.request(messages))

    async def ask_async(self, client: Any, messages: list[Any]) -> lm15.Response:
        return await client.complete(self.request(messages))

    def item(self, entry: Entry) -> lm15.Message:
        match entry["kind"]:
            case "user" if "image" in entry:
                mime, data = picture(entry)
                return lm15.Message.user([lm15.TextPart(entry["text"]), lm15.ImagePart(media_type=mime, data=data)])
            case "user":
                return lm15.Message.user(entry["text"])
            case "call":
                said: Any = lm15.ToolCallPart(entry["id"], entry["name"], entry["arguments"], **self.signed(entry))
            case "result":
                return lm15.Message.tool(entry["id"], entry["text"])
            case _:
                said = lm15.TextPart(entry["text"], **self.signed(entry))
        return lm15.Message.assistant([*self.thought(entry), said])

    def thought(self, entry: Entry) -> list[lm15.ThinkingPart]:
        """The reasoning before a text or call, with its seal, where the wire has it as a part of its own."""
        told = entry.get("reasoning")
        if told is None or self.wire == "google.generate_content":
            return []
        if self.wire == "anthropic.messages":
            return [self.thinking(told["text"], "thinking_signature", {"signature": told["seal"]})]
        return [self.thinking(told["text"], "reasoning_item", answers.reasoning_item(told))]

    def thinking(self, text: str, kind: str, state: Entry) -> lm15.ThinkingPart:
        return lm15.ThinkingPart(text, continuation=lm15.ContinuationState(self.maker, kind, state))

    def signed(self, entry: Entry) -> dict[str, Any]:
        """Google's signature, which belongs to the text or the call itself."""
        told = entry.get("reasoning")
        if told is None or self.wire != "google.generate_content":
            return {}
        state = lm15.ContinuationState(self.maker, "thought_signature", {"value": told["seal"]})
        return {"continuation": state}

    def append(self, messages: list[Any], reply: lm15.Response, text: str) -> None:
        messages += (reply.message, lm15.Message.tool(reply.tool_calls[0].id, text))

    def text(self, reply: lm15.Response) -> str:
        return "".join(part.text for part in reply.message.parts_of(lm15.TextPart))

    def calls(self, reply: lm15.Response) -> list[Any]:
        return [(each.id, each.name, each.input) for each in reply.tool_calls]

    def render(self) -> Callable[[], object]:
        """The messages → the bytes of the request."""
        client, messages = self.connect(), self.history(self.entries())
        return lambda: client.build_request(self.request(messages), False).body

    def decoder(self) -> Callable[[bytes], lm15.Response]:
        client, request = self.connect(), self.request(self.history(work.conversation(2)))
        return lambda body: client.parse_response(request, HttpResponse(200, "OK", HEADERS, body))

    def streamed(self, client: Any, messages: list[Any]) -> lm15.Response:
        request = self.request(messages)
        return lm15.materialize_response(client.stream(request), request)

    def call(self) -> Any:
        return Calling(self.given)

    def imports(self) -> tuple[str, str]:
        name, model = self.sync_class.__name__, self.given.model
        ready = f"from lm15 import *\nlm = {name}(api_key='none', base_url={self.given.url + self.path!r})"
        bound = {"max_tokens": work.MAX_TOKENS} if self.wire == "anthropic.messages" else {}
        asked = (
            f"Request(model={model!r}, system='Be brief.', messages=Message.user('Umbrella?'), "
            f"config=Config(**{bound!r}))"
        )
        return ready, f"assert lm.complete({asked}).text"


class Calling(LM15):
    """One whole call with messages that were made anew, as sabir's is measured."""

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self.transport = self.in_process(answers.reply(given.wire))
        self.client = self.connect(self.transport)
        self.renew()

    def renew(self) -> None:
        self.fresh = self.history(self.entries())

    def __call__(self) -> tuple[bytes, str]:
        text = self.text(self.ask(self.client, self.fresh))
        return self.transport.body, text


def create(given: Given) -> Callable[[], object]:
    """Make a thousand messages as an application does."""
    text = work.said(1)
    if given.wire == "text":
        return counted(lambda: [lm15.Message.user(text) for _ in range(CREATED)], CREATED)
    if given.wire == "result":
        result = work.result(2)
        return counted(lambda: [lm15.Message.tool(result["id"], result["text"]) for _ in range(CREATED)], CREATED)
    call = work.call(1)
    fields = call["id"], call["name"], call["arguments"]
    return counted(lambda: [lm15.Message.assistant([lm15.ToolCallPart(*fields)]) for _ in range(CREATED)], CREATED)


def message_memory(given: Given) -> Callable[[], object]:
    """Text messages that are held: bytes of each, by tracemalloc."""
    return held_by(lambda: [lm15.Message.user(work.said(number)) for number in range(given.size)])


CONTENDERS = {
    "lm15": LM15.contender(
        "render", *CALLED, "fresh", "stub_loop", imported="import lm15\nlm15.Message", create=create,
        message_memory=message_memory,
    )
}  # fmt: skip
