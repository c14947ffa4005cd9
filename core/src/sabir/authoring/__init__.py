"""The door for authors of plugins: all that a package beside core takes from it, besides `sabir` and `sabir.errors`.

    from sabir.authoring import Dialect, Tables, TurnScope, read_object, ReplyBuilder

What every provider plugin would write again has its modules in this folder; the other names are core's own. Each is
loaded at its first use, with the module that defines it. Type checkers and editors read them in `__init__.pyi`.
"""

from sabir import _door

_NAMES = {
    # The contract that a plugin implements
    "contract.dialect": "Decoder Dialect",
    "contract.provider": (
        "Access ApiKey AsyncWireResponse Connection Credential Profile Provider SABIR_API TokenCount WireHead "
        "WireRequest WireResponse"
    ),
    "contract.tables": "Calls IdentifierRule Roles Side Tables",
    "contract.scope": "DecodeScope Entry LossLog RequestScope Splice Turn TurnScope",
    "contract.framing": "Framing ServerEvent ServerEventReader",
    # Encoding
    "authoring.leaves": (
        "arguments_text arguments_value call_state declare error_text hints_of lose name_choice "
        "neutral_fields not_offered read_vendor refuse_setting result_text result_value stand_in state_of "
        "take_setting"
    ),
    "rendering.turns": "TurnMaker",
    "rendering.pairing": "pair side_of",
    "vocabulary.media": (
        "DEFAULT_MIMES MediaRule Modality SCHEMES check_url data_url_base64 data_url_bytes data_url_type "
        "form_of make_data_url mime_type read_data_url scheme_of shorten sniff_mime spelled_for_url "
        "split_provider_file type_parameters"
    ),
    "vocabulary.hints": "SHARED Sections with_hints",
    # Decoding
    "authoring.bodies": "Fields fields first_count items left_over read_count read_object text usage_of without",
    "reading.fold": "Fold ReplyBuilder decode_call is_empty",
    "authoring.frames": "EventFrames FRAMES",
    "authoring.stored": "CHOICES History Leaf data_url expect expect_name file_url listed medium read_hints read_text",
    # Failures, models, credentials and clients
    "authoring.failures": "ErrorTable Failure by_codes by_status by_words",
    "authoring.access": "read_endpoint",
    "authoring.transport": "ClientConnection Kept Library OwnConnection kept send",
    "authoring.inprocess": "InProcessConnection Served WaitingCall WaitingConnection",
    # Values and models
    "base.values": (
        "DEEPEST FrozenDict JSONObjectDocumentField JSONText JSONValue decode_json encode_json freeze "
        "object_view parse_json"
    ),
    "base.models": "AtRest Frozen assemble build describe load_as",
    "base.losses": "KINDS LossKind Strict refuse",
    "base.errors": "blaming described one_line printable",
    "vocabulary.messages": "OptionCall RESERVED RoleHint new_ids",
    "vocabulary.parts": "KnownPart NonEmpty Part Text",
    "vocabulary.reply": "BlockKind FinishReason block_delta",
    "vocabulary.settings": "ReasoningEffort WIRE_SETTINGS refuse_misnamed",
    "vocabulary.constructors": "Content as_messages name_kind",
    # Options and their runs
    "options.option": "OptionLike as_options",
    "options.arguments": "ArgumentsRefused Binder Bound",
    "options.signatures": "Provided first_paragraph is_asynchronous read_function unwrap values_of",
    "options.execution": "check_runs is_retryable text_of",
    "options.context": "at_depth current_depth deeper",
    "options.threads": "called start_thread",
    # Calls
    "calling.calls": "CallArguments Messages",
    "calling.exchange": "Script",
    "calling.drive": "Performer",
    "calling.fallback": "counting",
    "calling.relay": "Relay",
    "calling.stream": "AsyncClosing SyncClosing",
    "discovery.points": "load_beside load_point",
    "hooks.plugins": "Hooks",
    "discovery.registry": "split_model",
    # Stores
    "authoring.databases": "REMEDY_OF_DAMAGE describe_failure hide_secrets is_broken make_private",
    "authoring.providers": "PostingClient PostingConnection SDKProvider packaged_models",
    "authoring.credentials": "KeySource find_credentials",
}
"""The names, by the module of core that defines them."""
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}
__getattr__, __dir__, __all__ = _door(__name__, _MODULE_OF)
