"""What a scripted adapter sends: real requests of whom it stands for, or those of a wire on which nothing is lost.

And when it answers: at once, when the test opens a gate, or after seconds that nobody waits.
"""

import asyncio
import threading

import pytest
import sabir
from hypothesis import given
from sabir.authoring import DecodeScope
from sabir_testing.kit.request_contents import mark
from sabir_testing.scripted import Gate, ScriptedAdapter, ScriptMismatch, calls, delayed, reply
from sabir_testing.scripted.api import PLAIN

from tests.laws.histories import histories

PARIS = {"city": "Paris"}


@sabir.option
def weather(city: str) -> str:
    "Current weather in a city."
    return f"rain in {city}"


REAL = ("openai.chat:gpt-5", "openai.responses:gpt-5", "anthropic:claude-sonnet-5", "google:gemini-3-flash-preview")


@pytest.mark.parametrize("model", [*REAL, "mistral:mistral-large-latest", "echo:small"])
def test_requests_are_those_of_the_provider_that_is_stood_for(model: str) -> None:
    """The very bytes, losses and refusals of the installed plugin; only what comes back is scripted (UP-02)."""
    chat = [
        sabir.user("Look!", sabir.image("https://example.org/a.png"), sabir.video("https://example.org/a.mp4")),
        *ScriptedAdapter(reply(sabir.ReasoningPart(text="hm", state={"s": 1}), "yes")).complete_sync("?").messages,
        sabir.user("And now?"),
    ]
    settings = sabir.Settings(seed=3, max_output_tokens=5)
    llm, real = ScriptedAdapter("Yes.", sabir.errors.AuthenticationFailed("key"), model=model), sabir.adapter(model)

    rendering = real.render(chat, options=[weather], settings=settings)
    found = llm.complete_sync(chat, options=[weather], settings=settings)

    assert llm.last.rendering.body_bytes == rendering.body_bytes
    assert found.losses == rendering.losses != ()
    assert llm.target == real.target
    assert (found.origin.provider, found.origin.dialect) == (real.target.provider, real.target.dialect)
    with pytest.raises(sabir.RenderingRefused):
        llm.complete_sync(chat, strict=True)
    with pytest.raises(sabir.SettingsInvalid):
        llm.render("Hi", settings=sabir.Settings(vendor={real.target.provider: {"no_such_setting": 1}}))
    assert len(llm.sent) == 1
    with pytest.raises(sabir.errors.AuthenticationFailed, match="key") as caught:
        llm.complete_sync(chat)
    assert caught.value.provider == real.target.provider


def test_without_a_provider_nothing_is_lost() -> None:
    """The plain wire takes every part and every setting, so that a program's own tests meet no loss by accident."""
    cited = sabir.TextPart(text="yes", citations=(sabir.Citation(kind="page", source={"p": 1}),))
    chat = [
        sabir.system("Be brief."),
        sabir.user("Look!", sabir.image("https://example.org/a.png"), sabir.document(b"%PDF-1.4\n")),
        *ScriptedAdapter(reply(sabir.ReasoningPart(text="hm", state={"s": 1}), cited)).complete_sync("?").messages,
        sabir.user("And now?"),
        sabir.system("Be briefer."),
    ]
    settings = sabir.Settings(
        seed=3, temperature=0.5, top_p=0.5, stop="x", max_output_tokens=5, reasoning_effort="low",
        option_choice="auto", parallel_options=False, response_format={"type": "object"},
    )  # fmt: skip
    llm = ScriptedAdapter("Yes.", strict=["dropped", "downgraded", "relocated", "rewritten", "synthesized"])

    assert llm.complete_sync(chat, options=[weather], settings=settings).losses == ()


@given(history=histories)
def test_the_plain_wire_keeps_laws_1_and_2(history: list[sabir.Message]) -> None:
    """Every call is answered once, and every text is in the body or its message in the losses."""
    marked = list(mark(history))
    try:
        rendering = ScriptedAdapter().render([each.message for each in marked])
    except sabir.RenderingRefused:
        return
    body = rendering.body_bytes.decode()
    lost = {loss.message_id for loss in rendering.losses}
    waiting: list[str] = []
    for item in rendering.body["messages"]:
        if "answers" in item:
            waiting.remove(item["answers"])
            continue
        assert not waiting or item["from"] == "assistant"
        waiting += [item["call"]["id"]] if "call" in item else []

    assert not waiting
    for each in marked:
        assert each.message.id in lost or all(text in body for text in each.marks)


def test_the_plain_wire_reads_its_own_requests() -> None:
    """Messages, options and settings, so that a rendering which came from elsewhere is shown as well; no wire says of a
    result that no option ran."""
    chat = [
        sabir.system("Be brief."), sabir.user("Look!", sabir.image("https://example.org/a.png")),
        *ScriptedAdapter(reply("hm", calls(weather=[PARIS, {}, "no JSON"]))).complete_sync("?").messages,
    ]  # fmt: skip
    chat += sabir.answer_sync(chat, [weather])
    llm = ScriptedAdapter("Yes.")
    rendering = llm.render(chat, options=[weather], settings=sabir.Settings(seed=3))
    found = PLAIN.decode_history(rendering.body_bytes, DecodeScope(llm.target))

    policies = [each.result.option_name if each.result else each.policy for each in chat]
    assert [each.payload for each in found.messages] == [each.payload for each in chat]
    assert [each.policy for each in found.messages] == policies
    assert (found.options, found.settings, found.model) == ((weather,), sabir.Settings(seed=3), "model")


@pytest.mark.parametrize("model", ["scripted:model", *REAL])
def test_a_rendering_that_was_approved_is_sent_as_it_is(model: str) -> None:
    """Made by this adapter, or stored and loaded where another adapter made it; for another target it is refused."""
    made = sabir.Rendering.model_validate_json(ScriptedAdapter(model=model).render("Approved").model_dump_json())
    llm = ScriptedAdapter("Yes.", "Yes.", "Yes.", model=model)
    own = llm.render(chat := [sabir.user("Own")], options=[weather])

    assert [llm.send_sync(each).text for each in (made, own, own.for_stream())] == ["Yes."] * 3
    llm.assert_asked("Approved", "Own", "Own")
    assert llm.sent[1].messages == llm.sent[2].messages == tuple(chat)
    assert [sent.streaming for sent in llm.sent] == [made.streaming, own.streaming, True]
    with pytest.raises(sabir.SettingsInvalid, match="this adapter is scripted:other"):
        ScriptedAdapter("Yes.", model="scripted:other").send_sync(own)


def test_what_was_sent_is_what_the_program_gave() -> None:
    llm = ScriptedAdapter("Yes.", settings=sabir.Settings(seed=3, timeout=9), speaks_as="judge")
    chat = [sabir.user("Guilty?"), sabir.assistant("Hm.", policy="judge"), sabir.system("Decide.")]
    llm.complete_sync(chat, options=iter([weather]), settings=sabir.Settings(seed=4))
    sent = llm.last

    assert sent.messages == tuple(chat)
    assert sent.options[0].function is weather.function
    assert sent.settings == sabir.Settings(seed=4, timeout=9)
    assert sent.rendering.body["settings"] == {"seed": 4}
    assert (sent.user_text, sent.option_names, sent.number) == ("Guilty?", ("weather",), 1)
    assert repr(sent) == "<ScriptedRequest request 1: 'Guilty?' (3 messages, options weather)>"


# When it answers


async def test_a_gate_holds_an_answer_until_the_test_opens_it() -> None:
    """What a program shows meanwhile can be looked at, in the midst of a stream too.

    It may be opened from another thread: the event loop is woken as loops demand it, which its debug mode checks.
    """
    asyncio.get_running_loop().set_debug(True)
    llm = ScriptedAdapter(delayed("late", gate := Gate()), reply("first ", later := Gate(), "second"))
    calling = asyncio.create_task(llm.complete("Hi"))
    await gate.reached()
    assert not calling.done()
    opening = threading.Thread(target=gate.open)
    opening.start()
    opening.join()
    assert (await calling).text == "late"

    seen: list[str] = []

    async def show() -> None:
        async for text in llm.stream("Hi").text:
            seen.append(text)

    showing = asyncio.create_task(show())
    await later.reached()
    assert seen == ["first "]
    later.open()
    await showing
    assert seen == ["first ", "second"]


def test_a_gate_serves_threads_alike() -> None:
    """The program waits in one, the test opens the gate in the other."""
    llm = ScriptedAdapter(delayed("late", gate := Gate()))
    found: list[str] = []
    program = threading.Thread(target=lambda: found.append(llm.complete_sync("Hi").text))
    program.start()
    gate.reached_sync()
    assert found == []
    gate.open()
    program.join()
    assert found == ["late"]


async def test_a_call_held_at_a_gate_can_be_cancelled_and_does_not_hang() -> None:
    """The gate may be opened all the same; one that nobody opens fails the test when its patience ends."""
    llm = ScriptedAdapter(delayed("never", gate := Gate()), *[delayed("never", Gate(patience=0))] * 2)
    calling = asyncio.create_task(llm.complete("Hi"))
    await gate.reached()
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    gate.open()
    await gate.wait()

    with pytest.raises(
        ScriptMismatch, match=r"the test did not call Gate.open\(\) within 0 s; run the program in its own task or"
    ):
        llm.complete_sync("Hi")
    with pytest.raises(ScriptMismatch, match=r"did not call Gate.open\(\)"):
        await llm.complete("Hi")
    with pytest.raises(ScriptMismatch, match="no call of the program arrived at the Gate"):
        Gate(patience=0).reached_sync()


async def test_seconds_beyond_the_timeout_time_out_without_waiting() -> None:
    hurried = sabir.Settings(timeout=5, retries=0)
    llm = ScriptedAdapter(delayed("late", 30), delayed("soon", 3), *[delayed("late", 30), "again"] * 2)

    with pytest.raises(
        sabir.errors.CallTimedOut, match=r"no answer within 5 s; the scripted answer is delayed by 30 s"
    ):
        llm.complete_sync("Hi", settings=hurried)
    assert llm.complete_sync("Hi", settings=hurried).text == "soon"
    assert (await llm.complete("Hi", settings=sabir.Settings(timeout=5))).text == "again"
    assert (await llm.complete("Hi")).text == "late"


async def test_seconds_are_given_to_the_sleep_that_is_given() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(-seconds)

    ScriptedAdapter(delayed("late", 30), sleep=slept.append).complete_sync("Hi")
    await ScriptedAdapter(delayed("late", 30), sleep=slept.append).complete("Hi")
    await ScriptedAdapter(delayed("late", 30), sleep=sleep).complete("Hi")

    assert slept == [30, 30, -30]
    with pytest.raises(sabir.SettingsInvalid, match="sleep= of the ScriptedAdapter is an async function"):
        ScriptedAdapter(delayed("late", 30), sleep=sleep).complete_sync("Hi")
