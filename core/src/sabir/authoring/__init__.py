"""The public API for authors of plugins, in addition to `sabir` and `sabir.errors`.

    from sabir.authoring import Dialect, SDKProvider, Tables, TurnScope

Basic names. They suffice for an ordinary provider: the package sabir-echo, without its embeddings, and the project that
`sabir new` creates use no others.

    provider    SDKProvider KeySource ClientConnection Credential InProcessConnection InProcessResponse
    dialect     Dialect Tables Roles MediaRule Calls IdentifierRule
    encoding    RequestScope LossLog WIRE_SETTINGS Frozen
    decoding    DecodeScope ReplyBuilder Fold DataURL text_or_empty object_or_empty first_whole_number unknown_fields
                read_count
    errors      ErrorTable ErrorRule
    history     History
    types       Access Connection Entry FinishReason JSONValue KnownPart Modality Piece Provider ServerEvent Turn
                TurnScope WireRequest

The names under "types" are mostly for annotations: the types of arguments that core passes, and of results. All other
names are advanced: for binary streams, JSON schema rules, gateways described as data, unusual SDKs, wrappers of
adapters, runners and hooks. docs/reference/authoring.md describes all names, the basic ones first.

Each name is loaded at its first use, together with the module that defines it. `__init__.pyi` lists the names for type
checkers and editors.
"""

from sabir import _lazy_module
from sabir.base.renamed import RENAMED

_NAMES = {
    "authoring.credentials": "FoundCredential KeySource Values",
    "authoring.efforts": "fit_effort",
    "authoring.clients": "explaining_environment_errors",
    "authoring.event_frames": "EventFrames JSONLines",
    "authoring.failures": "ErrorRule ErrorTable Failure Raised",
    "authoring.providers": (
        "GeneratedSDKConnection InProcessConnection InProcessResponse SDKProvider SyncOnlyCall SyncOnlyConnection "
        "UserSDKConnection"
    ),
    "authoring.rows": "Row RowEntry RowProvider",
    "authoring.schemas": "SchemaRule fit_schema",
    "authoring.storage": "DatabaseFailure PackageGrade StoredNames",
    "authoring.stored": (
        "JSON_OBJECT Fields History PartReader first_whole_number list_or_empty object_or_empty read_count "
        "text_or_empty unknown_fields without_fields"
    ),
    "authoring.transport": "CapturedRequest ClientConnection Library OwnClientConnection",
    "base.errors": "did_you_mean one_line printable",
    "base.failures": "LossKind Strict",
    "base.files": "create_private_file replace_file",
    "base.models": "Frozen StoredModel describe_validation_error load_stored",
    "base.surface": "show_arguments",
    "base.values": (
        "FrozenDict JSONObjectDocumentField JSONText JSONValue count_values decode_json encode_json has_more_values"
    ),
    "calling.calls": "CallArguments Messages",
    "calling.drive": "Performer",
    "calling.exchange": "Action Emit Outcome Script",
    "calling.operations": "OperationClient operation_client",
    "calling.stream": "AsyncClosing Relay SyncClosing",
    "calling.wrapped": "WrappedAdapter",
    "contract.batch": "BatchAnswer BatchOrder BatchPage BatchPhase BatchRequest BatchResults BatchStatus",
    "contract.dialect": "Decoder Dialect Framing ServerEvent ServerEventReader",
    "contract.embeddings": "EmbeddingCall EmbeddingKind EmbeddingVectors",
    "contract.native": "NativeTool",
    "contract.operation": "Decoded Operation OperationRequest OperationResult",
    "contract.provider": (
        "SABIR_API Access AsyncWireResponse Connection Credential Profile Provider TokenCount WireHead WireRequest "
        "WireResponse"
    ),
    "contract.scope": "DecodeScope Insertion RequestScope",
    "contract.turns": "Calls Entry IdentifierRule LossLog Roles Side Tables Turn TurnScope",
    "discovery": "load_entry_point split_model",
    "hooks.announcing": "announce_work continue_work work_headers",
    "hooks.plugins": "installed_hooks",
    "hooks.work": "AgentWork",
    "options.execution": "CallDepth RaisedError call_function run_in_thread set_during",
    "options.option": "OptionLike",
    "options.signatures": "ArgumentsRefused BoundArguments Signature",
    "reading.fold": "Fold ReplyBuilder",
    "reading.incoming": "decode_answer",
    "rendering.pairing": "pair_messages side_of",
    "rendering.turns": "TurnMaker",
    "vocabulary.constructors": "as_messages describe_kind",
    "vocabulary.fields": "NonEmpty Text",
    "vocabulary.media": "DataURL MediaRule MediaURL Modality",
    "vocabulary.messages": "OptionCall RoleHint",
    "vocabulary.models": "ReasoningEffort packaged_models",
    "vocabulary.parts": "KnownPart Part Piece",
    "vocabulary.reply": "BlockKind FinishReason",
    "vocabulary.settings": "WIRE_SETTINGS",
}
"""The names for authors by the module that defines them."""
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}
_find, __dir__, __all__ = _lazy_module(__name__, _MODULE_OF)


def __getattr__(name: str) -> object:
    return _find(RENAMED.get(name, name))
