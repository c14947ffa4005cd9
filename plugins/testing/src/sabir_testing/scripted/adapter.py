"""A scripted adapter: an adapter whose answers a test defines in advance.

    llm = ScriptedAdapter(calls(weather={"city": "Paris"}), "It rains in Paris.")
    run(llm)                                        the program under test
    llm.sent[1].results, llm.sent[0].user_text      what it asked
    llm.assert_finished()                           it asked for all of it

One answer for each request: `sent[i]` is what the script's answer `i` was given to, and a call that its RetryPolicy
sends again takes the next one. Nothing leaves the process and nobody waits: retries happen as the policy says, but at
once.
"""

from typing import TypedDict, Unpack

from sabir import ModelAdapter, Option, Rendering, Reply, ReplyStream, RetryPolicy, Settings, SyncReplyStream
from sabir.authoring import (
    Access,
    CallArguments,
    DecodeScope,
    Dialect,
    Messages,
    Strict,
    as_messages,
)
from sabir.base.failures import strict_kinds
from sabir.errors import CallError

from sabir_testing.scripted.answers import (
    Scriptable,
)
from sabir_testing.scripted.gate import ScriptMismatch, Sleep
from sabir_testing.scripted.provider import stand_in
from sabir_testing.scripted.script import Asked, Script, counted
from sabir_testing.scripted.sent import Sent, listed
from sabir_testing.scripted.wire import ScriptedConnection

_CALL = ("options", "settings", "strict")
_NO_SETTINGS = Settings()


class ScriptedArguments(TypedDict, total=False):
    """What a scripted adapter takes beside its answers, all of it optional.

    `model` is the `provider:model` that it stands for: its requests are rendered as that provider's plugin does, with
    its losses; left out, nothing is lost. `speaks_as`, `settings` and `strict` are those of `sabir.adapter`. `sleep` is
    called with the seconds of delays; without it they are passed over.
    """

    model: str
    speaks_as: str
    settings: Settings | None
    strict: Strict
    sleep: Sleep | None


class _AtOnce(RetryPolicy):
    """A policy that decides as another does and never waits."""

    def delay(self, attempt: int, error: CallError, jitter: float = 1.0) -> float | None:
        return None if super().delay(attempt, error, jitter) is None else 0.0


class ScriptedAdapter(ModelAdapter):
    """An adapter that answers requests from a script, one after another.

    Its methods raise the errors of a real adapter, and ScriptMismatch for a request beyond the script.
    """

    def __init__(self, *answers: Scriptable, **how: Unpack[ScriptedArguments]) -> None:
        """The script; SettingsInvalid for an answer that is none, and what `sabir.adapter` raises for `model`."""
        Settings.refuse_misnamed("ScriptedAdapter", how, tuple(ScriptedArguments.__annotations__))
        speaks_as, settings, strict = how.get("speaks_as", "llm"), how.get("settings"), how.get("strict", False)
        strict_kinds(strict)
        self._script = Script(answers, speaks_as)
        self._own_settings = settings or _NO_SETTINGS
        connection = ScriptedConnection(self._script.serve, how.get("sleep"))
        provider, dialect, model = stand_in(how.get("model", "scripted:model"), connection)
        self._requests: Dialect = dialect
        super().__init__(provider, dialect, model, Access(), speaks_as=speaks_as, settings=settings, strict=strict)

    def __repr__(self) -> str:
        """Its model, and its place in the script."""
        return f"<ScriptedAdapter {self.target}: {self._script}>"

    @property
    def sent(self) -> tuple[Sent, ...]:
        """What came, request by request."""
        return self._script.sent

    @property
    def last(self) -> Sent:
        """The last request; ScriptMismatch where none came."""
        if not self._script.sent:
            raise ScriptMismatch("nothing was sent to this adapter; check that the program was given it")
        return self._script.sent[-1]

    def assert_finished(self) -> None:
        """The program asked for every answer and for no more; ScriptMismatch says what is left, and what was sent."""
        __tracebackhide__ = True
        self._script.assert_finished()

    def assert_asked(self, *user_texts: str) -> None:
        """As many requests came, each with this text of the user; ScriptMismatch says which differs."""
        __tracebackhide__ = True
        found = tuple(sent.user_text for sent in self.sent)
        if found == user_texts:
            return
        pairs = enumerate(zip(found, user_texts, strict=False), 1)
        differing = [(number, *pair) for number, pair in pairs if pair[0] != pair[1]]
        for number, asked, expected in differing[:1]:
            raise ScriptMismatch(f"request {number} asks {asked!r} in place of {expected!r}; sent: {listed(self.sent)}")
        expected = counted(len(user_texts), "request")
        raise ScriptMismatch(f"{expected} expected and {len(found)} sent: {listed(self.sent)}")

    def assert_offered(self, *option_names: str) -> None:
        """Every request offered just these options, in this order; ScriptMismatch names the first that did not."""
        __tracebackhide__ = True
        expected = f"options {', '.join(option_names)}" if option_names else "no options"
        for sent in self.sent or (self.last,):
            if sent.option_names != option_names:
                raise ScriptMismatch(f"{expected} expected in every request; another is {sent}")

    def render(self, messages: Messages, **how: Unpack[CallArguments]) -> Rendering:
        """The request and its losses, as those of the provider that is stood for."""
        return self._rendered("render", messages, how)

    async def complete(self, messages: Messages, **how: Unpack[CallArguments]) -> Reply:
        """Render and send; the next answer."""
        return await self.send(self._rendered("complete", messages, how))

    def complete_sync(self, messages: Messages, **how: Unpack[CallArguments]) -> Reply:
        """As `complete`, waiting."""
        return self.send_sync(self._rendered("complete_sync", messages, how))

    async def send(self, rendering: Rendering) -> Reply:
        """The next answer; SettingsInvalid for a rendering that was made for another target."""
        return await super().send(self._unhurried(rendering))

    def send_sync(self, rendering: Rendering) -> Reply:
        """As `send`, waiting."""
        return super().send_sync(self._unhurried(rendering))

    def stream(self, messages: Messages | Rendering, **how: Unpack[CallArguments]) -> ReplyStream:
        """The next answer as it comes: texts word by word, or in the pieces that the script gives."""
        if isinstance(messages, Rendering):
            return super().stream(self._unhurried(messages), **how)
        return super().stream(self._unhurried(self._rendered("stream", messages, how)))

    def stream_sync(self, messages: Messages | Rendering, **how: Unpack[CallArguments]) -> SyncReplyStream:
        """As `stream`, waiting."""
        if isinstance(messages, Rendering):
            return super().stream_sync(self._unhurried(messages), **how)
        return super().stream_sync(self._unhurried(self._rendered("stream_sync", messages, how)))

    def _rendered(self, function: str, messages: Messages, how: CallArguments) -> Rendering:
        Settings.refuse_misnamed(function, how, _CALL)
        given, options = as_messages(messages), Option.all_of(how.get("options") or ())
        how["options"] = options
        rendering = super().render(given, **how)
        settings = (how.get("settings") or _NO_SETTINGS).laid_over(self._own_settings)
        self._script.note(Asked(rendering, tuple(given), options, settings))
        return rendering

    def _unhurried(self, rendering: Rendering) -> Rendering:
        """A rendering that is sent again without waiting; what it was made of is known from here on."""
        if rendering.target == self.target and not self._script.knows(rendering):
            scope = DecodeScope(self.target, self.speaks_as, rendering.option_names)
            found = self._requests.decode_history(rendering.body_bytes, scope)
            self._script.note(Asked(rendering, found.messages, found.options, found.settings))
        return rendering.model_copy(update={"retries": _AtOnce(**dict(rendering.retries))})
