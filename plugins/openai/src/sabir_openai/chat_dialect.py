"""The Chat Completions API: tables of the content that it accepts, and the dialect `openai.chat`.

    system, user   one message each                  assistant   one message a turn: content, then calls
    results        one `tool` message each           audio       an assistant's audio is sent back as its id only

Compatible endpoints differ from this API in the ways listed in QUIRKS. https://developers.openai.com/api/reference/resources/chat
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from sabir.authoring import Calls, Dialect, IdentifierRule, MediaRule, Modality, NativeTool, Roles, Side, Tables

from sabir_openai.chat_decode import decode
from sabir_openai.chat_encode import encode_turn
from sabir_openai.chat_history import decode_history
from sabir_openai.chat_native import NATIVE_BY_QUIRK
from sabir_openai.chat_request import encode_request
from sabir_openai.chat_stream import ChatDecoder
from sabir_openai.errors import ERRORS
from sabir_openai.settings import ChatFileHints, ChatOptionHints, ImageHints, OpenAIMediaHints

NAME = "openai.chat"
PATH = "/chat/completions"
IMAGES = r"image/(png|jpe?g|gif|webp)"
"""MIME types of the images that the models read. https://developers.openai.com/api/docs/guides/images-vision"""
SOUNDS = r"audio/(wav|x-wav|wave|vnd\.wave|mpeg|mp3|mpeg3|x-mpeg-3)"
"""MIME types of the two sound formats that the models accept, wav and mp3. https://developers.openai.com/api/docs/guides/audio"""
_TABLES = Tables(
    roles=Roles(native={"assistant": frozenset({"reasoning", "refusal", "opaque"})}),
    media={
        ("user", "image"): MediaRule(url="", data=IMAGES, parameters=True, hints=ImageHints),
        ("user", "audio"): MediaRule(data=SOUNDS, hints=OpenAIMediaHints),
        ("user", "document"): MediaRule(data="application/pdf", file="", parameters=True, hints=ChatFileHints),
        ("assistant", "audio"): MediaRule(data="", file=""),
    },
    calls=Calls(
        ids=IdentifierRule(characters=r"[A-Za-z0-9_.:-]", longest=64),
        names=IdentifierRule(longest=64),
        hints=ChatOptionHints,
    ),
)
_ANY_DOCUMENT = MediaRule(url="", data="", file="", parameters=True)
NINE_CHARACTERS = IdentifierRule(characters="[A-Za-z0-9]", longest=9, first=r"(?=[A-Za-z0-9]{9}\Z)[A-Za-z0-9]")
"""Ids of exactly nine characters, which servers of Mistral's models require."""


def _add_media_rule(side_and_modality: tuple[Side, Modality], rule: MediaRule) -> Callable[[Tables], Tables]:
    """Return a function that adds a rule to the tables, for the media of one modality on one side of a conversation."""
    return lambda tables: replace(tables, media={**tables.media, side_and_modality: rule})


def _with_native_tools(tools: Mapping[str, NativeTool]) -> Callable[[Tables], Tables]:
    """Return a function that adds the endpoint's own tools to the tables."""
    return lambda tables: replace(tables, native=tools)


VARIANTS: Mapping[str, Callable[[Tables], Tables]] = {
    "no_strict": lambda tables: replace(tables, calls=replace(tables.calls, hints=None)),
    "call_ids_9": lambda tables: replace(tables, calls=replace(tables.calls, ids=NINE_CHARACTERS)),
    "needs_reasoning": lambda tables: replace(tables, roles=replace(tables.roles, reasoning="foreign")),
    **dict.fromkeys(("document_url", "file_data_url"), _add_media_rule(("user", "document"), _ANY_DOCUMENT)),
    "file_url": _add_media_rule(("user", "document"), MediaRule(url="", data="", parameters=True)),
    "video_url": _add_media_rule(("user", "video"), MediaRule(url="", data="", parameters=True)),
    "results_image": _add_media_rule(("results", "image"), MediaRule(url="", data=IMAGES, parameters=True)),
    **{quirk: _with_native_tools(tools) for quirk, tools in NATIVE_BY_QUIRK.items()},
}
"""Quirk → the function that changes the tables for endpoints with this quirk."""
TABLES = replace(_TABLES, variants=VARIANTS)
"""The content that the API accepts. An assistant's audio is sent back as its id. Audio of another API becomes a
placeholder, or is dropped if the setting `unsupported_media` is "drop".
"""

QUIRKS: Mapping[str, str] = {
    "max_tokens": "the output limit is named max_tokens; as an endpoint's quirk, not for models known to reason",
    "system_role": "instructions have the role system, never developer",
    "plain_text": "content without media is sent as one string, and a refusal as ordinary text",
    "joins_turns": "the roles must alternate: messages of one role in a row are joined, or separated by a message '…'",
    "no_calls": "option calls and results of a history are sent as text, because the endpoint does not accept options",
    "echoes_reasoning": "an assistant's reasoning, and content items of the endpoint's own types, are sent back",
    "json_object": "a reply can be restricted to JSON, but not to a schema",
    "random_seed": "the seed is called random_seed",
    "no_strict": "options are declared without `strict`",
    "needs_reasoning": "an assistant message with calls must have `reasoning_content`, which may be empty",
    "thinking_type": 'reasoning is turned off with {"thinking": {"type": "disabled"}} instead of an effort',
    "document_url": "a document is a part of the type `document_url`, with its URL or data URL",
    "file_url": "a document is a part of the type `file_url`, with its URL or bare base64",
    "file_data_url": "`file_data` of a document may be its URL",
    "video_url": "a video is a part of the type `video_url`, with its URL or data URL",
    "results_image": "an option result may contain images",
    "openrouter_tools": "the web search is declared as openrouter:web_search",
    "xai_tools": "the vendor's own tools are declared in xAI's form",
    "groq_compound": "the vendor's own tools are turned on by compound_custom",
    "groq_tools": "the vendor's own tools are browser_search and code_interpreter",
    "call_ids_9": "ids of calls have exactly nine letters or digits",
    "cache_key": "`prompt_cache` is sent as prompt_cache_key",
    "cache_markers": "`prompt_cache` is sent as cache_control in content parts; contents are arrays",
    "top_level_cache": "`prompt_cache` is sent as the request's field cache_control",
    "gateway_cache": "`prompt_cache` asks the gateway to place cache markers itself",
    "automatic_cache": "every prompt is cached, for a time that requests cannot choose",
}
"""Quirk → how an endpoint with this quirk differs from OpenAI's API."""

_FAMILY = re.compile(r"(?:[^/]+/)*[A-Za-z]*")


def family(model: str) -> str:
    """Return the maker and product line in a model's name, such as "deepseek" for "deepseek-chat".

    Reasoning may be sent back to all models of the same family at the same endpoint.
    """
    match = _FAMILY.match(model)
    return match[0] if match else ""


CHAT = Dialect(
    name=NAME,
    tables=TABLES,
    path=lambda target: PATH,
    streaming_fields={"stream": True, "stream_options": {"include_usage": True}},
    family=family,
    encode_turn=encode_turn,
    encode_request=encode_request,
    decode=decode,
    decoder=ChatDecoder,
    decode_error=ERRORS.decode,
    decode_history=decode_history,
    prompt_fields=("response_format", "reasoning_effort", "verbosity", "tools"),
    cache_markers=("cache_control", "prompt_cache_breakpoint"),
    quirks=QUIRKS,
)
"""The dialect `openai.chat`."""
