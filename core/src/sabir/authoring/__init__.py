"""The door for authors of plugins: all names that a package beside core takes besides `sabir` and `sabir.errors`.

    from sabir.authoring import Dialect, Tables, TurnScope, DecodeScope, ReplyBuilder

The modules of this folder hold the code that every provider plugin would write again; the other names are core's own.
Each name is loaded at its first use, with the module that defines it. Type checkers and editors read them in
`__init__.pyi`.
"""

from sabir import _door

_GROUPS = {
    "The contract": (
        "A dialect is pure, a connection does the I/O, a provider says which of each there are; core does all else.",
        {
            "contract.dialect": "Decoder Dialect",
            "contract.provider": (
                "Access AsyncWireResponse Connection Credential Profile Provider SABIR_API TokenCount WireHead "
                "WireRequest WireResponse"
            ),
        },
    ),
    "Tables": (
        "What a wire takes is data, which core carries out: roles, media, calls and schemas.",
        {
            "authoring.schemas": "SchemaRule fit_schema",
            "contract.turns": "Calls IdentifierRule Roles Side Tables",
            "vocabulary.media": "MediaRule Modality",
            "rendering.pairing": "pair side_of",
            "rendering.turns": "TurnMaker",
        },
    ),
    "Encoding": (
        "Equal turns and equal scopes give equal bytes, and each thing that the target cannot take is a loss.",
        {
            "contract.turns": "Entry LossLog Turn TurnScope",
            "contract.scope": "RequestScope Splice",
            "authoring.efforts": "fit_effort",
            "base.failures": "LossKind Strict",
            "vocabulary.models": "ReasoningEffort",
            "vocabulary.settings": "WIRE_SETTINGS",
        },
    ),
    "Decoding": (
        "Any bytes become a reply or one of the library's errors, and a stream folds to what the whole would be.",
        {
            "contract.scope": "DecodeScope",
            "authoring.stored": "Fields fields first_count items left_over read_count text without",
            "reading.fold": "Fold ReplyBuilder",
            "vocabulary.reply": "BlockKind FinishReason",
        },
    ),
    "Framing": (
        "The bytes of a stream become the same events however they are cut into chunks.",
        {
            "contract.dialect": "Framing ServerEvent ServerEventReader",
            "authoring.transport": "EventFrames",
        },
    ),
    "Stored requests": (
        "A request that was sent is read back by tables; what has no place is a loss with its path.",
        {
            "authoring.stored": "History JSON_OBJECT Leaf",
        },
    ),
    "Media": (
        "A medium is one URL, read by its header and never by its payload.",
        {
            "vocabulary.media": "DataURL MediaURL",
        },
    ),
    "Providers": (
        "Nothing is read, made or opened before the first send, and no secret is shown.",
        {
            "authoring.providers": (
                "InProcessConnection PostingClient PostingConnection SDKProvider Served WaitingCall WaitingConnection "
                "packaged_models"
            ),
            "authoring.credentials": "KeySource",
            "authoring.environment": "environment_checked",
            "authoring.rows": "Row RowEntry RowProvider",
            "authoring.transport": "ClientConnection Kept Library OwnConnection",
        },
    ),
    "Failures": (
        "Every failure is one of the library's errors, in one line that no terminal obeys.",
        {
            "authoring.failures": "ErrorRule ErrorTable Failure DatabaseFailure",
            "base.models": "describe",
            "base.errors": "one_line printable",
            "vocabulary.constructors": "name_kind",
        },
    ),
    "Values": (
        "A value cannot change, is JSON, and keeps what a newer writer added where it is stored.",
        {
            "base.values": (
                "FrozenDict JSONObjectDocumentField JSONText JSONValue count_values decode_json encode_json "
                "has_more_values"
            ),
            "base.models": "AtRest Frozen load_as",
            "authoring.names": "StoredNames",
            "vocabulary.parts": "KnownPart NonEmpty Part Text",
            "vocabulary.messages": "OptionCall RoleHint",
        },
    ),
    "Options": (
        "What a function takes is its schema, and what it raises is its result.",
        {
            "options.option": "OptionLike",
            "options.signatures": "ArgumentsRefused Bound Signature",
            "options.execution": "RaisedError Depth called start_thread",
        },
    ),
    "Calls": (
        "Whoever wraps an adapter offers what an adapter does.",
        {
            "calling.calls": "CallArguments Messages Relay",
            "vocabulary.constructors": "as_messages",
            "calling.exchange": "Script",
            "calling.drive": "Performer",
            "calling.fallback": "counting",
            "calling.stream": "AsyncClosing SyncClosing",
            "discovery": "load_point split_model",
        },
    ),
    "Hooks": (
        "What telemetry raises is logged, and all others are called; any other hook that fails is named.",
        {
            "hooks.plugins": "installed_hooks",
        },
    ),
}
"""Heading of a group → its law, and its names by the module of core that defines them."""
_MODULE_OF = {
    name: module for _, modules in _GROUPS.values() for module, names in modules.items() for name in names.split()
}
__getattr__, __dir__, __all__ = _door(__name__, _MODULE_OF)
