"""The references of both doors: each name of `sabir.__all__` and of `sabir.authoring` in its group, and the contracts.

a name ──▶ its signature, its meaning, its members            Protocols and hooks by member
"""

import importlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import sabir
import sabir.errors
from sabir import authoring
from sabir.base import failures as losses
from sabir.calling import calls, fallback
from sabir.contract import provider
from sabir.hooks import builders
from sabir.hooks import specs as hookspecs
from sabir.hooks.plugins import KNOWN_HOOKS
from sabir.options import option as options
from sabir.vocabulary import constructors

from tests.docs.sources import (
    Entry,
    Function,
    describe,
    describe_class,
    describe_constant,
    documented_attributes,
    signature,
    tree_of,
    whole_text,
)

GROUPS: Mapping[str, tuple[str, ...]] = {
    "Adapters": (
        "adapter", "ApiKey", "ModelAdapter", "Adapter", "fallback", "FallbackAdapter", "FALLBACK_ON", "fewest_losses",
        "Target",
    ),
    "Making messages": (
        "user", "system", "assistant", "image", "audio", "video", "document", "MessageBuilder", "OptionResultBuilder",
    ),
    "Messages": (
        "Message", "PartsPayload", "OptionCallPayload", "OptionResultPayload", "Origin", "TextPart", "Citation",
        "MediaPart", "ReasoningPart", "RefusalPart", "NativeCallPart",
        "NativeResultPart", "NativeReference", "OpaquePart", "UnknownPart", "UnknownPayload", "RUNTIME",
        "group_steps", "Step",
    ),
    "Histories": ("save", "load", "dumps", "dumps_lines", "loads", "schema"),
    "Options": (
        "option", "Option", "web_search", "code_execution", "mcp_server", "NativeOption", "ToolContext", "answer",
        "answer_sync", "unanswered",
    ),
    "Settings": ("Settings", "Bounds", "ResponseFormat", "RetryPolicy"),
    "Rendering": ("Rendering", "Loss", "dialect", "PureDialect", "DecodedHistory"),
    "Replies and streams": (
        "Reply", "Alternative", "FailedMember", "Usage", "ReplyStream", "SyncReplyStream", "StreamEvent", "ReplyStart",
        "BlockStart", "BlockDelta", "BlockEnd", "ReplyEnd",
    ),
    "Plugins": (
        "providers", "ProviderStatus", "models", "ModelInfo", "provider", "register", "unregister", "commands",
        "hookimpl",
    ),
}  # fmt: skip
"""Heading → names, in the order in which a reader meets them. The errors are a group of their own."""

WORDS = {
    "Messages": calls, "CallArguments": calls, "Content": constructors, "Source": constructors,
    "MediaSettings": constructors, "OptionLike": options, "Anchor": builders, "MediaDetails": builders,
    "Strict": losses, "LossKind": losses, "Kinds": fallback,
}  # fmt: skip
"""Names that signatures use without being public themselves, and where they are defined."""


def error_names() -> list[str]:
    """The public errors, as the tree of errors.py has them."""
    return sorted(sabir.errors.__all__)


def surface() -> str:
    """The generated part of docs/reference/surface.md."""
    return "\n\n".join(f"## {title}\n{_group(names)}" for title, names in GROUPS.items())


def surface_errors() -> str:
    return "\n".join(f"- `{name}`: {describe(name).summary}" for name in error_names())


def surface_words() -> str:
    return "\n".join(line for name, module in WORDS.items() for line in lines_of(describe_constant(name, module)))


def _group(names: tuple[str, ...]) -> str:
    return "\n".join(line for name in names for line in lines_of(describe(name)))


def lines_of(entry: Entry, indent: str = "") -> Iterator[str]:
    """A list item for an entry, and one below it for each of its members."""
    headings = " or ".join(f"`{heading}`" for heading in entry.heading.split("\n"))
    yield f"{indent}- {headings}" + (f": {entry.summary}" if entry.summary else "")
    for member in entry.members:
        yield from lines_of(member, indent + "  ")


PROTOCOLS = (
    "Provider", "Decoder", "Framing", "Connection", "WireHead", "WireResponse", "AsyncWireResponse", "SyncOnlyCall",
)  # fmt: skip
VALUES = (
    "Dialect", "Tables", "Roles", "MediaRule", "Calls", "IdentifierRule", "Credential", "Profile", "Access",
    "WireRequest", "ModelInfo", "Target", "Turn", "Entry", "TurnScope", "RequestScope", "Insertion",
    "DecodeScope", "LossLog", "ServerEvent", "TokenCount",
)  # fmt: skip
"""What the Protocols' members take and give; a dialect first."""


def named(name: str) -> type:
    found: type = getattr(authoring if name in authoring.__all__ else sabir, name)
    return found


def protocols() -> str:
    """Every Protocol with its attributes and methods."""
    return "\n\n".join(_section(named(name)) for name in PROTOCOLS)


def value_list() -> str:
    """The value_list that the Protocols speak of, with their fields."""
    aliases = [line for name in ("SABIR_API", "ApiKey") for line in lines_of(describe_constant(name, provider))]
    return "\n".join([*aliases, *(line for name in VALUES for line in lines_of(_contract_entry(named(name))))])


def hooks() -> str:
    functions = {node.name: node for node in tree_of(hookspecs).body if hasattr(node, "args")}
    entries = [Entry(signature(functions[name]), whole_text(getattr(hookspecs, name))) for name in KNOWN_HOOKS]
    return "\n".join(line for entry in entries for line in lines_of(entry))


def _section(cls: type) -> str:
    entry = _contract_entry(cls)
    return "\n".join([f"### {cls.__name__}", entry.summary, *(f"- {_item(member)}" for member in entry.members)])


def _item(member: Entry) -> str:
    return f"`{member.heading}`" + (f": {member.summary}" if member.summary else "")


def _contract_entry(cls: type) -> Entry:
    described = describe_class(cls)
    members = dict.fromkeys((*documented_attributes(cls), *described.members))  # each once
    return Entry(cls.__name__, whole_text(cls), tuple(members))


AUTHOR_GROUPS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "The contract": (
        "A dialect translates without I/O, a connection sends bytes, and a provider returns both; core does the rest.",
        (
            "Decoder", "Dialect", "Access", "AsyncWireResponse", "Connection", "Credential", "Profile", "Provider",
            "SABIR_API", "TokenCount", "WireHead", "WireRequest", "WireResponse",
        ),
    ),
    "Tables": (
        "The rules of an API are data that core applies: roles, media, calls and schemas.",
        (
            "SchemaRule", "fit_schema", "Calls", "IdentifierRule", "Roles", "Side", "Tables", "NativeTool",
            "MediaRule", "Modality",
            "pair_messages", "side_of", "TurnMaker",
        ),
    ),
    "Encoding": (
        "Equal turns and equal scopes give equal bytes, and everything that the target cannot accept is a loss.",
        (
            "Entry", "LossLog", "Turn", "TurnScope", "RequestScope", "Insertion", "fit_effort", "LossKind", "Strict",
            "ReasoningEffort", "WIRE_SETTINGS",
        ),
    ),
    "Decoding": (
        "Any bytes become a reply or one of the library's errors, and a stream gives the reply of a complete response.",
        (
            "DecodeScope", "Fields", "object_or_empty", "first_whole_number", "list_or_empty", "unknown_fields",
            "read_count", "text_or_empty", "without_fields",
            "Fold", "ReplyBuilder", "BlockKind", "FinishReason",
        ),
    ),
    "Framing": (
        "The bytes of a stream become the same events, however they are divided into chunks.",
        ("Framing", "ServerEvent", "ServerEventReader", "JSONLines", "EventFrames"),
    ),
    "Stored requests": (
        "Tables convert a stored request to messages and settings; a field without an equivalent is a loss.",
        ("History", "JSON_OBJECT", "PartReader"),
    ),
    "Media": (
        "A medium is one URL, and only the header of a data URL is parsed.",
        ("DataURL", "MediaURL"),
    ),
    "Providers": (
        "No key is read and no client is created before the first request, and no secret is shown.",
        (
            "InProcessConnection", "UserSDKConnection", "GeneratedSDKConnection", "SDKProvider", "InProcessResponse",
            "SyncOnlyCall", "FoundCredential", "Values",
            "SyncOnlyConnection", "packaged_models", "KeySource", "explaining_environment_errors", "Row",
            "RowEntry", "RowProvider", "ClientConnection", "CapturedRequest",
            "Library", "OwnClientConnection",
        ),
    ),
    "Failures": (
        "Every failure is one of the library's errors, with a message of one line and without control characters.",
        (
            "ErrorRule", "ErrorTable", "Failure", "Raised", "describe_validation_error", "one_line",
            "printable", "describe_kind", "did_you_mean",
        ),
    ),
    "Values": (
        "Values are immutable JSON, and stored values keep fields that a newer version added.",
        (
            "FrozenDict", "JSONObjectDocumentField", "JSONText", "JSONValue", "count_values", "decode_json",
            "encode_json", "has_more_values", "StoredModel", "Frozen", "load_stored", "StoredNames", "KnownPart",
            "NonEmpty", "Part", "Piece", "Text", "OptionCall", "RoleHint",
        ),
    ),
    "Stores": (
        "Only the owner may read a file, no file is seen half-written, and no error shows a password.",
        ("create_private_file", "replace_file", "DatabaseFailure"),
    ),
    "Options": (
        "The parameters of a function are its JSON schema, and an exception becomes an error result.",
        (
            "OptionLike", "ArgumentsRefused", "BoundArguments", "Signature", "RaisedError", "CallDepth",
            "call_function", "run_in_thread", "set_during",
        ),
    ),
    "Calls": (
        "An adapter around an adapter inherits from WrappedAdapter and overrides only what it changes.",
        (
            "WrappedAdapter", "CallArguments", "Messages", "show_arguments", "Relay", "as_messages", "Script",
            "Action", "Emit", "Outcome",
            "Performer", "AsyncClosing", "SyncClosing", "load_entry_point", "split_model",
        ),
    ),
    "Operations": (
        "A request besides chat has the retries, errors, time limits and telemetry of a chat.",
        ("Operation", "OperationRequest", "Decoded", "OperationResult", "OperationClient", "operation_client",
         "EmbeddingCall", "EmbeddingKind", "EmbeddingVectors"),
    ),
    "Batches": (
        "The requests of a batch are renderings of a dialect, which also decodes the answers.",
        (
            "BatchOrder", "BatchRequest", "BatchStatus", "BatchPhase", "BatchResults", "BatchPage", "BatchAnswer",
            "decode_answer",
        ),
    ),
    "Hooks": (
        "An exception of a telemetry hook is logged, and an exception of any other hook names the plugin.",
        ("installed_hooks", "AgentWork", "announce_work", "work_headers", "continue_work"),
    ),
    "Grades": (
        "A package's author declares a grade, and only a run of the kit on this machine verifies it.",
        ("PackageGrade",),
    ),
}  # fmt: skip
"""Heading → its law and its names, in the order in which an author meets them."""
_TASKS = re.findall(r"^    ([a-z]+)  +([A-Za-z_ ]+(?:\n {16}[A-Za-z_ ]+)*)$", authoring.__doc__ or "", re.MULTILINE)
BASIC: Mapping[str, tuple[str, ...]] = {task: tuple(names.split()) for task, names in _TASKS}
"""Task → the basic names for authors. The docstring of `sabir.authoring` is the one place that lists them."""
BASIC_NAMES = frozenset(name for names in BASIC.values() for name in names)
LAWS = {heading: law for heading, (law, _) in AUTHOR_GROUPS.items()}
NAMES = {heading: names for heading, (_, names) in AUTHOR_GROUPS.items()}
HOMES: Mapping[str, str] = vars(authoring)["_MODULE_OF"]


TITLES = {
    "provider": "Provider and connection", "dialect": "Dialect and its tables", "encoding": "Encoding a request",
    "decoding": "Decoding an answer", "errors": "Errors of a vendor", "history": "Reading a stored request",
    "types": "Types for annotations",
}  # fmt: skip


def basic() -> str:
    """The part of docs/reference/authoring.md that lists the basic names."""
    return "\n\n".join(
        "\n".join([f"### {TITLES[task]}", *(line for name in names for line in _lines(name))])
        for task, names in BASIC.items()
    )


def group(heading: str) -> str:
    """A group's part of docs/reference/authoring.md: its advanced names."""
    names = [name for name in NAMES[heading] if name not in BASIC_NAMES]
    return "\n".join([f"### {heading}", LAWS[heading], "", *(line for name in names for line in _lines(name))])


def _lines(name: str) -> Iterator[str]:
    if name in (*PROTOCOLS, *VALUES):  # those two have its members
        meaning = whole_text(getattr(authoring, name)).partition(". ")[0].removesuffix(".")
        yield f"- [`{name}`](contracts.md): {meaning}."
    else:
        yield from lines_of(_author_entry(name))


def _author_entry(name: str) -> Entry:
    value = getattr(authoring, name)
    module = importlib.import_module(f"sabir.{HOMES[name]}")
    if inspect.isclass(value) and value.__module__ == module.__name__:
        return describe_class(value)
    functions = [node for node in tree_of(module).body if isinstance(node, Function)]
    nodes = {node.name: node for node in functions}
    if name in nodes:
        return Entry(signature(nodes[name]), whole_text(value))
    return describe_constant(name, module)


AUTHOR_SECTIONS: Mapping[str, Callable[[], str]] = {
    "authors basic": basic,
    **{f"authors {heading.lower()}": partial(group, heading) for heading in AUTHOR_GROUPS},
}
