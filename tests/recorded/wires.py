"""The wires that are recorded: who answers on each, and what each of its cassettes says about that.

a vendor's key is set        the vendor itself, under its own address and a model of its own
a case of the mock's         the mock, under the vendor's model name, on which its answers depend
everything else              the embedded server, or the proxy before it
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sabir.base.values import JSONValue

ServerName = Literal["embedded", "proxy", "mock"]
NOWHERE = "http://127.0.0.1:9"
"""Where a replay believes its server to be: nothing listens there."""
LOCAL_MODEL = "smollm2"


@dataclass(frozen=True)
class Wire:
    """One dialect. `path`: what its SDK's base URL has behind the address. `refused`: a field that all servers refuse.

    `key_variables`: with one of them set, the vendor itself answers, at `vendor_url`, whatever a variable names as its
    address; `vendor_model` is then asked.
    """

    server: ServerName
    path: str
    vendor: str
    vendor_url: str
    vendor_model: str
    key_variables: tuple[str, ...]
    refused: Mapping[str, JSONValue]

    @property
    def vendor_server(self) -> str:
        """What a cassette says of its server where the vendor answered."""
        return f"{self.vendor}'s own service"


WIRES: Mapping[str, Wire] = {
    "openai.chat": Wire(
        server="embedded",
        path="/v1",
        vendor="OpenAI",
        vendor_url="https://api.openai.com/v1",
        vendor_model="gpt-5.1",
        key_variables=("OPENAI_API_KEY",),
        refused={"top_k": "many"},
    ),
    "openai.responses": Wire(
        server="embedded",
        path="/v1",
        vendor="OpenAI",
        vendor_url="https://api.openai.com/v1",
        vendor_model="gpt-5.1",
        key_variables=("OPENAI_API_KEY",),
        refused={"top_k": "many"},
    ),
    "anthropic.messages": Wire(
        server="embedded",
        path="",
        vendor="Anthropic",
        vendor_url="https://api.anthropic.com",
        vendor_model="claude-sonnet-5",
        key_variables=("ANTHROPIC_API_KEY",),
        refused={"top_k": "many"},
    ),
    "google.generate_content": Wire(
        server="proxy",
        path="",
        vendor="Google",
        vendor_url="https://generativelanguage.googleapis.com",
        vendor_model="gemini-3-flash-preview",
        key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        refused={"toolConfig": "many"},  # the proxy lets wrong types in other fields pass, or fails at them with 500
    ),
}
