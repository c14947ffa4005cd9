"""The door for authors of plugins: all names that a package beside core takes besides `sabir` and `sabir.errors`.

    from sabir.authoring import Dialect, Tables, TurnScope, DecodeScope, ReplyBuilder

The modules of this folder hold the code that every provider plugin would write again; the other names are core's own.
Each name is loaded at its first use, with the module that defines it. Type checkers and editors read them in
`__init__.pyi`.
"""

from sabir import _door
from sabir.base.renamed import RENAMED

_NAMES = {
    "authoring.credentials": "KeySource",
    "authoring.efforts": "fit_effort",
    "authoring.environment": "explaining_environment_errors",
    "authoring.failures": "DatabaseFailure ErrorRule ErrorTable Failure",
    "authoring.names": "StoredNames",
    "authoring.providers": (
        "GeneratedSDKConnection InProcessConnection InProcessResponse SDKProvider SyncOnlyCall SyncOnlyConnection "
        "UserSDKConnection packaged_models"
    ),
    "authoring.rows": "Row RowEntry RowProvider",
    "authoring.schemas": "SchemaRule fit_schema",
    "authoring.stored": (
        "JSON_OBJECT Fields History PartReader first_whole_number list_or_empty object_or_empty read_count "
        "text_or_empty unknown_fields without_fields"
    ),
    "authoring.transport": "CapturedRequest ClientConnection EventFrames Library OwnClientConnection",
    "base.errors": "one_line printable",
    "base.failures": "LossKind Strict",
    "base.models": "Frozen StoredModel describe_validation_error load_stored",
    "base.surface": "show_arguments",
    "base.values": (
        "FrozenDict JSONObjectDocumentField JSONText JSONValue count_values decode_json encode_json has_more_values"
    ),
    "calling.calls": "CallArguments Messages",
    "calling.drive": "Performer",
    "calling.exchange": "Script",
    "calling.stream": "AsyncClosing Relay SyncClosing",
    "calling.wrapped": "WrappedAdapter",
    "contract.dialect": "Decoder Dialect Framing ServerEvent ServerEventReader",
    "contract.provider": (
        "SABIR_API Access AsyncWireResponse Connection Credential Profile Provider TokenCount WireHead WireRequest "
        "WireResponse"
    ),
    "contract.scope": "DecodeScope Insertion RequestScope",
    "contract.turns": "Calls Entry IdentifierRule LossLog Roles Side Tables Turn TurnScope",
    "discovery": "load_entry_point split_model",
    "hooks.plugins": "installed_hooks",
    "options.execution": "CallDepth RaisedError call_function run_in_thread",
    "options.option": "OptionLike",
    "options.signatures": "ArgumentsRefused BoundArguments Signature",
    "reading.fold": "Fold ReplyBuilder",
    "rendering.pairing": "pair_messages side_of",
    "rendering.turns": "TurnMaker",
    "vocabulary.constructors": "as_messages describe_kind",
    "vocabulary.media": "DataURL MediaRule MediaURL Modality",
    "vocabulary.messages": "OptionCall RoleHint",
    "vocabulary.models": "ReasoningEffort",
    "vocabulary.parts": "KnownPart NonEmpty Part Text",
    "vocabulary.reply": "BlockKind FinishReason",
    "vocabulary.settings": "WIRE_SETTINGS",
}
"""The names for authors by the module that defines them."""
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}
_find, __dir__, __all__ = _door(__name__, _MODULE_OF)


def __getattr__(name: str) -> object:
    return _find(RENAMED.get(name, name))
