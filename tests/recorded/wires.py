"""The wires that are recorded: who answers on each, and what each of its cassettes says about that.

a vendor's key is set        the vendor itself, under its own address and a model of its own
a case of the mock's         the mock, under the vendor's model name, on which its answers depend
everything else              the embedded server, or the proxy before it
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
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

    vendor: str
    vendor_url: str
    vendor_model: str
    key_variables: tuple[str, ...]
    server: ServerName = "embedded"
    path: str = ""
    refused: Mapping[str, JSONValue] = field(default_factory=lambda: {"top_k": "many"})

    @property
    def vendor_server(self) -> str:
        """What a cassette says of its server where the vendor answered."""
        return f"{self.vendor}'s own service"


_OPENAI = Wire("OpenAI", "https://api.openai.com/v1", "gpt-5.1", ("OPENAI_API_KEY",), path="/v1")
WIRES: Mapping[str, Wire] = {
    "openai.chat": _OPENAI,
    "openai.responses": _OPENAI,
    "anthropic.messages": Wire("Anthropic", "https://api.anthropic.com", "claude-sonnet-5", ("ANTHROPIC_API_KEY",)),
    "google.generate_content": Wire(
        "Google", "https://generativelanguage.googleapis.com", "gemini-3-flash-preview",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"), server="proxy",
        refused={"toolConfig": "many"},  # the proxy lets wrong types in other fields pass, or fails at them with 500
    ),
}  # fmt: skip
