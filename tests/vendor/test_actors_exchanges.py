"""A thread whose phases are answered by what two vendors' own services returned, whatever they are asked.

UPDATE_AGENT_CONFIG ─▶ first ── anthropic.messages ─▶ second ── openai.chat
"""

from itertools import islice

import pytest
from sabir.contract.dialect import Dialect
from sabir_actors import ActorSystem, Chain, Phase, ThreadClient
from sabir_anthropic.dialect import MESSAGES
from sabir_openai.chat_dialect import CHAT
from sabir_testing.loopback import Server, whole

from tests.vendor.support import Exchange, exchanges, scope_for

CLAUDE, GPT = "anthropic:claude-sonnet-5", "openai.chat:gpt-5"
CHAIN = Chain("two", [Phase("first", "You are the first.", model=CLAUDE), Phase("second", "Go on.", model=CLAUDE)])
MOST = 12
"""Pairs of answers that a thread is made of."""


def said(dialect: Dialect) -> list[tuple[Exchange, str]]:
    """Answers that are words alone, and these."""
    found = []
    for each in exchanges(dialect.name):
        if each.status == 200 and each.response and not each.sse:
            reply = dialect.decode(each.body, scope_for(each, dialect.name))
            if reply.text.strip() and all(message.kind == "parts" for message in reply.messages):
                found.append((each, reply.text))
    return found


PAIRS = [
    pytest.param(*pair, id=f"{pair[0][0].id} {pair[1][0].id}")
    for pair in islice(zip(said(MESSAGES), said(CHAT), strict=False), MOST)
]


@pytest.mark.parametrize(("claude", "gpt"), PAIRS)
async def test_a_thread_says_what_the_vendors_said(
    claude: tuple[Exchange, str], gpt: tuple[Exchange, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """CH-28: the second phase asks the model that it was changed to, on its wire; both come to what was answered."""
    (first, words), (second, others) = claude, gpt
    with Server([whole(first.body)]) as anthropic, Server([whole(second.body)]) as openai:
        for vendor, url in (("ANTHROPIC", anthropic.url), ("OPENAI", f"{openai.url}/v1")):
            monkeypatch.setenv(f"{vendor}_BASE_URL", url)
            monkeypatch.setenv(f"{vendor}_API_KEY", "sk-nothing")
        async with ActorSystem(chains=[CHAIN]) as system:
            client = ThreadClient(system)
            thread_id = await client.create("olive", "What is moss?", chain="two")
            await client.configure(thread_id, "second", model=GPT)
            await client.start(thread_id)
            result = await client.result(thread_id)
            outputs = system.threads.view(thread_id).outputs
    assert result.status == "completed", result.error_message
    assert [each.response for each in outputs.values()] == [words, others]
    assert [[each.path for each in server.asked] for server in (anthropic, openai)] == [
        ["/v1/messages"],
        ["/v1/chat/completions"],
    ]
