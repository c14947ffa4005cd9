"""A conversation with a vendor's own tools: they are offered, never run, and their calls are stored as they came."""

import pytest
import sabir
from sabir.errors import OptionInvalid
from sabir_session import Conversation
from sabir_testing.scripted import ScriptedAdapter, calls, reply

CALL = sabir.NativeCallPart(tool="web_search", pair_id="s1", dialect="acme.chat", raw={"id": "s1"}, queries=("webb",))
PAGE = sabir.NativeReference(url="https://nasa.gov/webb", title="Webb")
RESULT = sabir.NativeResultPart(tool="web_search", pair_id="s1", dialect="acme.chat", raw={"of": "s1"}, sources=(PAGE,))
SERVER = sabir.mcp_server("https://mcp.example.org", authorization="token-7c41", headers={"X": "header-9e02"})


def search(query: str) -> str:
    """Search."""
    return f"nothing about {query}"


def test_a_native_call_is_stored_and_nothing_runs() -> None:
    llm = ScriptedAdapter(reply(CALL, RESULT, "A galaxy."), "And a star.")
    conversation = Conversation(llm, options=[sabir.web_search(), sabir.code_execution(), SERVER])
    answer = conversation.ask_sync("What did Webb see?")

    assert (answer.text, len(llm.sent)) == ("A galaxy.", 1)
    assert [part for message in conversation.messages for part in message.parts][1:3] == [CALL, RESULT]
    assert conversation.ask_sync("And?").text == "And a star."
    assert sabir.loads(sabir.dumps(conversation.messages)) == list(conversation.messages)


def test_only_the_function_given_for_a_tool_answers_calls() -> None:
    llm = ScriptedAdapter(calls(search={"query": "webb"}), "Nothing.")
    answer = Conversation(llm, options=[sabir.web_search(otherwise=search)]).ask_sync("What did Webb see?")

    assert answer.text == "Nothing."
    assert llm.sent[1].results[0].result == "nothing about webb"


def test_credentials_are_in_no_record_and_no_preview() -> None:
    llm = ScriptedAdapter("Yes.", model="anthropic:claude-sonnet-5")
    conversation = Conversation(llm, options=[SERVER])
    rendering = conversation.preview("Ask them.")
    conversation.ask_sync("Ask them.")
    texts = [repr(rendering), repr(conversation), repr(llm.sent), sabir.dumps(conversation.messages)]

    assert b"token-7c41" in rendering.body_bytes
    assert [loss.path for loss in rendering.losses if "options" in loss.path] == ["options[0].headers"]
    assert not any(secret in text for secret in ("token-7c41", "header-9e02") for text in texts)


def test_a_fallback_gives_each_member_the_tool_or_the_function() -> None:
    web = sabir.web_search(otherwise=search)
    members = [sabir.adapter("anthropic:claude-sonnet-5", api_key="k"), sabir.adapter("echo:m")]
    first, second = (member.render(sabir.user("?"), options=[web]) for member in members)

    assert first.body["tools"][0]["name"] == "web_search"
    assert second.body["options"][0]["name"] == "search"
    assert sabir.fallback(*members).render(sabir.user("?"), options=[web]) == first


def test_a_coroutine_given_for_a_tool_needs_the_async_method() -> None:
    async def later(query: str) -> str:
        """Search."""
        return query

    conversation = Conversation(ScriptedAdapter("Yes."), options=[sabir.web_search(otherwise=later)])
    with pytest.raises(OptionInvalid):
        conversation.ask_sync("?")
