"""Native options: tools that a vendor runs itself, under one name for all vendors.

    web_search() · code_execution() · mcp_server(url) ──▶ NativeOption ──the dialect's NativeTool──▶ the vendor's tool
                                                               └── otherwise=function, if the vendor has no such tool

A native option has no function. Its calls and results are parts of the reply (NativeCallPart, NativeResultPart), never
option calls, so no program answers them. Credentials of an MCP server are in the request only: they are not in `repr`,
dumps, losses and errors.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, TypeAlias, cast
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, ValidationError

from sabir.base.errors import OptionInvalid, one_line
from sabir.base.models import describe_validation_error
from sabir.base.shown import Arguments
from sabir.base.values import JSONObjectDocumentField, ObjectView
from sabir.options.option import Option
from sabir.vocabulary.fields import NonEmpty, Text
from sabir.vocabulary.parts import SHARED, Sections

if TYPE_CHECKING:
    from sabir.options.option import OptionLike

NativeKind: TypeAlias = Literal["web_search", "code_execution", "mcp_server"]
"""The tools that have one name for all vendors."""
NATIVE_FIELDS = ("domains", "blocked_domains", "max_uses", "allowed_tools", "authorization", "headers")
"""The fields of a NativeOption that a vendor's tool may lack. A field that is set and not sent is a loss."""
_SERVER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


class NativeOption(Option):
    """A tool that the vendor runs, such as its web search. Make one with `web_search`, `code_execution` or
    `mcp_server`, and pass it in `options=[…]`.

    `kind` is the tool and `name` the name for `option_choice`. `domains`, `blocked_domains` and `max_uses` restrict a
    search; `url`, `allowed_tools`, `authorization` and `headers` describe an MCP server. `vendor` maps a provider's
    name to further parameters of its tool, which are sent unchanged. `otherwise` is an option with a function, which is
    offered instead if the vendor has no such tool; without it, the tool is a loss. `authorization`, `headers` and
    `otherwise` are not dumped or shown.
    """

    model_config = ConfigDict(hide_input_in_errors=True)
    is_native: ClassVar[bool] = True

    kind: NativeKind
    domains: tuple[NonEmpty, ...] = ()
    blocked_domains: tuple[NonEmpty, ...] = ()
    max_uses: int | None = Field(default=None, ge=1)
    url: Text | None = None
    allowed_tools: tuple[NonEmpty, ...] = ()
    authorization: Text | None = Field(default=None, repr=False, exclude=True)
    headers_json: JSONObjectDocumentField | None = Field(default=None, alias="headers", repr=False, exclude=True)
    otherwise: Option | None = Field(default=None, repr=False, exclude=True)

    headers: ClassVar = ObjectView("headers_json", "Further HTTP headers for the MCP server.")

    @property
    def answered_here(self) -> tuple[Option, ...]:
        """The options whose calls this program answers: `otherwise`, or nothing."""
        return () if self.otherwise is None else (self.otherwise,)

    @property
    def fields_to_send(self) -> tuple[str, ...]:
        """The names of the NATIVE_FIELDS that are set."""
        return tuple(name for name in NATIVE_FIELDS if getattr(self, name))

    def without(self, names: Iterable[str]) -> "NativeOption":
        """Return a copy without the NATIVE_FIELDS `names`."""
        defaults = {
            "headers" if name == "headers_json" else name: field for name, field in NativeOption.model_fields.items()
        }
        return self.model_copy(update={name: defaults[name].default for name in names})

    def check_runs(self, *, asynchronous: bool) -> NoReturn:
        """Raise OptionInvalid, because the vendor runs the tool."""
        raise OptionInvalid(f"option {self.name!r} is the vendor's own tool; read its results in the reply")

    def __repr_args__(self) -> Arguments:
        """Yield the arguments of `repr`. A query of the URL is left out, because it may contain a key."""
        for name, content in super().__repr_args__():
            yield name, content.partition("?")[0] if name == "url" and isinstance(content, str) else content

    def _seen_by_a_model(self) -> tuple[Any, ...]:
        return (*super()._seen_by_a_model(), *(getattr(self, name) for name in NativeOption.__annotations__))


def web_search(
    *,
    domains: Collection[str] = (),
    blocked_domains: Collection[str] = (),
    max_uses: int | None = None,
    otherwise: "OptionLike | None" = None,
    vendor: Sections | None = None,
) -> NativeOption:
    """Return the vendor's own web search as an option. The model searches while it answers, and the vendor runs it.

    `domains` are the only domains to search, `blocked_domains` the domains to leave out, and `max_uses` is the maximum
    number of searches in a reply. A restriction that the vendor's tool lacks is a loss. `otherwise` is a function of
    yours (or an option), which is offered instead if the vendor has no web search. `vendor` maps a provider's name to
    further parameters of its tool, such as `{"acme": {"depth": "low"}}`. Raises OptionInvalid for an
    invalid value.

    >>> import sabir
    >>> def search(query: str) -> str:
    ...     return f"nothing about {query}"
    >>> llm = sabir.adapter("echo:m")
    >>> rendering = llm.render(sabir.user("Any news?"), options=[sabir.web_search(otherwise=search)])
    >>> rendering.body["options"][0]["name"], rendering.losses
    ('search', ())
    """
    if domains and blocked_domains:
        raise OptionInvalid("web_search has domains and blocked_domains, which no vendor accepts together; pass one")
    fields = {
        "domains": _tuple_of(domains, "domains"),
        "blocked_domains": _tuple_of(blocked_domains, "blocked_domains"),
    }
    return _new_native("web_search", "web_search", otherwise, vendor, **fields, max_uses=max_uses)


def code_execution(*, otherwise: "OptionLike | None" = None, vendor: Sections | None = None) -> NativeOption:
    """Return the vendor's own tool that runs code as an option. The model writes the code, and the vendor runs it.

    `otherwise` and `vendor` mean what they mean for `web_search`. Raises OptionInvalid for an invalid value.
    """
    return _new_native("code_execution", "code_execution", otherwise, vendor)


def mcp_server(
    url: str,
    *,
    name: str | None = None,
    allowed_tools: Collection[str] = (),
    authorization: str | None = None,
    headers: Mapping[str, str] | None = None,
    otherwise: "OptionLike | None" = None,
    vendor: Sections | None = None,
) -> NativeOption:
    """Return a remote MCP server as an option. The vendor connects to the server, and the model calls its tools.

    `name` names the server in requests and replies; by default it is made from the URL's host. `allowed_tools` are the
    only tools to offer. `authorization` is an access token, without "Bearer", and `headers` are further HTTP headers.
    Both are sent to the vendor, and never shown or stored. `otherwise` and `vendor` mean what they mean for
    `web_search`. To connect to a server from your own program, use the package sabir-mcp.

    Vendors do not ask before the model calls a tool of the server, so offer only servers that you trust.

    Raises OptionInvalid for a URL that is not an http(s) URL or contains a user or password, and for an invalid value.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        parts, host = urlsplit(""), ""
    if parts.scheme not in ("http", "https") or not host:
        raise OptionInvalid("the url of mcp_server is not an http(s) URL; pass the address of the MCP server")
    if parts.username or parts.password:
        raise OptionInvalid("the url of mcp_server contains a user or password; pass authorization= instead")
    label = name if name is not None else re.sub(r"^(?=\d)", "mcp_", re.sub(r"[^A-Za-z0-9_-]", "_", host))[:64]
    if not _SERVER_NAME.fullmatch(label):
        raise OptionInvalid(
            f"the name {one_line(repr(label), 80)} of mcp_server is not up to 64 letters, digits, _ or -"
        )
    secrets = {"authorization": authorization, "headers": None if headers is None else dict(headers)}
    tools = _tuple_of(allowed_tools, "allowed_tools")
    return _new_native("mcp_server", label, otherwise, vendor, url=url, allowed_tools=tools, **secrets)


def _tuple_of(texts: Collection[str], field: str) -> tuple[str, ...]:
    if isinstance(texts, str):
        raise OptionInvalid(f"{field} is the text {one_line(repr(texts), 60)}; write {field}=[…]")
    return tuple(texts)


# The fields are NativeOption's, which pydantic validates, hence Any.
def _new_native(
    kind: NativeKind, name: str, otherwise: "OptionLike | None", vendor: Sections | None, **fields: Any
) -> NativeOption:
    """Return a NativeOption. Raises OptionInvalid for an invalid field, and for vendor parameters under "*"."""
    if vendor and SHARED in vendor:
        raise OptionInvalid(
            f"vendor[{SHARED!r}] of {kind}: each vendor's tool has parameters of its own; name the provider"
        )
    replacement = None if otherwise is None else _function_option(otherwise, kind)
    try:
        return NativeOption.model_validate(
            {"kind": kind, "name": name, "vendor": vendor, "otherwise": replacement, **fields}
        )
    except ValidationError as error:
        raise OptionInvalid(f"{kind}: {one_line(describe_validation_error(error))}") from None


def _function_option(otherwise: "OptionLike", kind: NativeKind) -> Option:
    """Return the Option for `otherwise`. Raises OptionInvalid for a native option."""
    listed = cast("Iterable[OptionLike]", [otherwise])
    (option,) = Option.all_of(listed)
    if isinstance(option, NativeOption):
        raise OptionInvalid(f"otherwise of {kind} is a vendor's tool too; pass a function")
    return option
