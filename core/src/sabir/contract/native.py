"""How an API declares the vendor's own tools. Core decides what is sent, and the dialect formats it.

NativeOption ──fields that the tool lacks: losses──▶ NativeTool.encode ──▶ fields of the request
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from sabir.base.values import JSONValue

if TYPE_CHECKING:
    from sabir.options.native import NativeOption

# The last argument is the RequestScope, whose module imports this one, hence Any.
EncodeNative: TypeAlias = "Callable[[NativeOption, Mapping[str, JSONValue], Any], Mapping[str, JSONValue] | str]"
ChooseNative: TypeAlias = "Callable[[NativeOption], JSONValue]"


@dataclass(frozen=True, slots=True)
class NativeTool:
    """How an API declares one of the vendor's own tools. An item of `Tables.native`.

    `encode` returns fields of the request, such as `{"tools": [{"type": "web_search"}]}`. Its arguments are the
    NativeOption, the user's further parameters for this vendor, and the RequestScope. If the tool cannot be sent in
    this request, `encode` returns the reason as text, which becomes a loss. Core joins the lists and objects
    of several options, and passes them to `encode_request` in `RequestScope.native`. `fields` names the fields of the
    NativeOption that `encode` sends: `domains`, `blocked_domains`, `max_uses`, `allowed_tools`, `authorization`,
    `headers`. Others are losses if they are set, and `encode` does not get them. `choice` returns the value of
    `RequestScope.native_choice`, with which the model must use the tool; None if the API cannot require it.
    """

    encode: EncodeNative
    fields: frozenset[str] = frozenset()
    choice: "ChooseNative | None" = None
