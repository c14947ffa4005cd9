"""The two dialects of OpenAI by their short names; each is loaded when it is requested.

chat ─▶ openai.chat (Chat Completions)        responses ─▶ openai.responses
"""

from dataclasses import replace

from sabir.authoring import Dialect, IdentifierRule, Tables


def variant(short_name: str, call_id_length: int | None = None, streams_usage: bool = True) -> Dialect:
    """A dialect; for chat, also a variant for endpoints with fixed-length ids or without `stream_options`."""
    if short_name == "responses":
        from sabir_openai.responses_dialect import RESPONSES

        return RESPONSES
    from sabir_openai.chat_dialect import CHAT

    if call_id_length is None and streams_usage:
        return CHAT
    tables, fields = CHAT.tables, CHAT.streaming_fields
    if call_id_length is not None:
        exactly = rf"(?=[A-Za-z0-9]{{{call_id_length}}}\Z)[A-Za-z0-9]"
        rule = IdentifierRule(characters="[A-Za-z0-9]", longest=call_id_length, first=exactly)
        variants = {quirk: _with_ids(each, rule) for quirk, each in tables.variants.items()}
        tables = replace(_with_ids(tables, rule), variants=variants)
    return replace(CHAT, tables=tables, streaming_fields=fields if streams_usage else {"stream": True})


def _with_ids(tables: Tables, rule: IdentifierRule) -> Tables:
    return replace(tables, calls=replace(tables.calls, ids=rule))
