"""An adapter that tries several adapters in order: if one provider is down, the next answers.

    llm = sabir.fallback("acme:large", "other:large")
    llm.complete ──▶ acme:large ── Overloaded ──▶ other:large ──▶ reply        failed_members: acme:large

With `order=`, the members are tried in the order of a key of their renderings, for example those with the fewest losses
first. A member's own retries come first: the next member is tried if all of them fail. The same conversation is
rendered for each member that is tried; the reply contains the losses of the member that answered, and `failed_members`
those of the members that failed before.

    try_members ── answer of the first member ──▶ caller ── an error ──▶ try_members ── answer of the next member
                                                                             └── or raises: the error, or AllFailed

The generator `try_members` decides which member is called next; each call has its own generator. It makes a sync call
itself and yields the answer. It yields an async call as a coroutine, which the caller awaits; an error is thrown into
the generator. A stream switches to the next member only before its first event, because a reader that saw the beginning
of one reply must not get another.
"""

from collections.abc import Callable, Collection, Coroutine, Generator, Iterable, Sequence
from contextlib import AsyncExitStack, ExitStack
from functools import partial
from operator import itemgetter
from typing import Any, Generic, NamedTuple, Never, Protocol, TypeAlias, TypeVar, Unpack, runtime_checkable

from sabir.base import failures
from sabir.base.errors import SabirError, SettingsInvalid, WrongWord, one_line
from sabir.base.failures import RenderingRefused, Strict
from sabir.base.surface import show_arguments
from sabir.calling.adapter import adapter
from sabir.calling.calls import Adapter, CallArguments, Messages
from sabir.calling.drive import logger
from sabir.calling.exchange import Script
from sabir.calling.stream import AsyncClosing, Relay, ReplyStream, SyncClosing, SyncReplyStream
from sabir.contract.dialect import Rendering
from sabir.contract.provider import TokenCount
from sabir.options.option import Option
from sabir.vocabulary.constructors import as_messages
from sabir.vocabulary.reply import AllFailed, FailedMember, Reply, StreamEvent
from sabir.vocabulary.settings import Settings, Target

FALLBACK_ON: frozenset[type[SabirError]] = frozenset({
    failures.RateLimited, failures.QuotaExceeded, failures.Overloaded, failures.Unavailable, failures.ServerFailed,
    failures.ConnectionFailed, failures.CallTimedOut, failures.ResponseInvalid, RenderingRefused, AllFailed,
})  # fmt: skip
"""The errors after which a fallback tries its next member by default: the provider is busy, down, unreachable, too slow
or out of credit, the response is invalid, or the member cannot accept the conversation. Subclasses count too. All other
errors are raised at once: a missing or wrong key, an unknown model, an invalid or too long request, a filtered request.
"""

_ARGUMENTS = ("speaks_as", "settings", "strict", "fallback_on", "order")
_MEMBER_ARGUMENTS = ("api_key", "base_url", "client", "model_info")
"""Arguments of `sabir.adapter` that belong to one provider, so that `fallback` does not accept them."""

MESSAGE_CHARACTERS = 460
"""About how many characters the errors of all members together have in the message of AllFailed or RenderingRefused.
The error of one member may always have 40.
"""

Answer = TypeVar("Answer")
Answer_co = TypeVar("Answer_co", covariant=True)
Result = TypeVar("Result")
Kinds: TypeAlias = tuple[type[SabirError], ...]
"""The error classes after which the next member is tried."""


class MemberAnswer(NamedTuple, Generic[Answer_co]):
    """One step of `try_members`: the answer of a member (or its coroutine), and the members that failed before."""

    answer: Answer_co
    failed: tuple[FailedMember, ...]


class Sortable(Protocol):
    """The interface of a value by which members can be sorted: it has `<`."""

    def __lt__(self, other: Any, /) -> bool:
        """Return whether this value comes before the other."""


Order: TypeAlias = Callable[[Rendering], Sortable]
"""Returns the sort key of a member for its rendering of a conversation. The smallest key is tried first."""


def fewest_losses(rendering: Rendering) -> tuple[int, int, int]:
    """Return the numbers of a rendering's losses: dropped, downgraded, and all others. For `sabir.fallback(order=…)`.

    >>> import sabir
    >>> llm = sabir.fallback("echo:large", "echo:small", order=sabir.fewest_losses)
    >>> llm.complete_sync("Hello!").origin.model
    'large'
    """
    kinds = [loss.kind for loss in rendering.losses]
    dropped, downgraded = kinds.count("dropped"), kinds.count("downgraded")
    return dropped, downgraded, len(kinds) - dropped - downgraded


Attempts: TypeAlias = Generator[MemberAnswer[Answer], None, None]


def try_members(members: Sequence[Adapter], kinds: Kinds, ask: Callable[[Adapter], Answer]) -> Attempts[Answer]:
    """Call the members in order by `ask`, and yield each answer. The next member is called if a member raises one of
    `kinds`, or if the caller throws such an error into the generator.

    Any other error is raised, with a note that names the members that failed before, if any. Raises AllFailed or
    RenderingRefused if every member failed.
    """
    failed: list[FailedMember] = []
    errors: list[SabirError] = []
    for member, following in zip(members, (*members[1:], None), strict=True):
        try:
            yield MemberAnswer(ask(member), tuple(failed))
        except kinds as error:
            errors.append(error)
            failed += _describe_failed(member, error)
            if following is not None:
                name = type(error).__name__
                logger.info("%s failed: %s: %s; the fallback tries %s", member.target, name, error, following.target)
        except Exception as error:
            if failed:
                error.add_note(f"members of the fallback that failed before: {_join_errors(failed)}")
            raise
    texts, last = _join_errors(failed), errors[-1]
    if all(isinstance(error, RenderingRefused) for error in errors):
        losses = [loss for each in failed for loss in each.losses]
        raise RenderingRefused(f"no model of the fallback accepts this request: {texts}", losses) from last
    raise AllFailed(f"no model of the fallback answered: {texts}", failed_members=failed, errors=errors) from last


def _first_key(member: Adapter) -> str:
    """Return the key in `extra_body_for` for fields of the first member. No target has this name, so no other member
    gets the fields.
    """
    return f"the first member ({member.target})"


def _describe_failed(member: Adapter, error: SabirError) -> Sequence[FailedMember]:
    """Return the FailedMember for an error; for AllFailed of a nested fallback, the members of that fallback."""
    if isinstance(error, AllFailed):
        return error.failed_members
    message = str(error).encode(errors="replace").decode()
    losses = getattr(error, "losses", ())
    return (FailedMember(target=member.target, error=type(error).__name__, message=message, losses=losses),)


def _join_errors(failed: Sequence[FailedMember]) -> str:
    """Return one line that names every failed member and its error."""
    length = max(MESSAGE_CHARACTERS // len(failed) - 2, 40)
    return "; ".join(one_line(f"{each.target}: {each.error}: {each.message}", length) for each in failed)


async def _await_first(attempts: Attempts[Coroutine[Any, Any, Result]]) -> MemberAnswer[Result]:
    """Await the members' coroutines in order, and return the first answer. Raises the errors of `try_members`."""
    step = next(attempts)
    while True:
        try:
            return MemberAnswer(await step.answer, step.failed)
        except Exception as error:
            step = attempts.throw(error)


def _with_failed(reply: Reply, failed: tuple[FailedMember, ...]) -> Reply:
    """Return the reply with the members that failed before in `failed_members`."""
    return reply.model_copy(update={"failed_members": (*failed, *reply.failed_members)}) if failed else reply


class _FallbackRelay(Relay):
    """Passes on the events of the first member whose stream sends an event."""

    def __init__(self, attempts: Attempts[ReplyStream | SyncReplyStream]) -> None:
        self._attempts, self._has_begun = attempts, False
        stream, self._passed = next(attempts)
        super().__init__(stream)

    def adapt_reply(self, reply: Reply) -> Reply:
        """Return the reply with the members that failed before in `failed_members`."""
        return _with_failed(reply, self._passed)

    def next_event(self) -> Script[StreamEvent | None]:
        """Return a script that reads the next event. If a member fails before its first event, the next
        member is used.
        """
        while True:
            try:
                event = yield from super().next_event()
                self._has_begun = True
                return event
            except Exception as error:
                if self._has_begun:
                    raise
                self.stream, self._passed = self._attempts.throw(error)


@show_arguments
@runtime_checkable
class Counting(Protocol):
    """The interface of an adapter that counts tokens."""

    async def count_tokens(self, messages: Messages, **how: Unpack[CallArguments]) -> TokenCount:
        """Return the number of input tokens of the request for a conversation. See `ModelAdapter.count_tokens`."""

    def count_tokens_sync(self, messages: Messages, **how: Unpack[CallArguments]) -> TokenCount:
        """Sync version of `count_tokens`. Blocks the thread."""


class FallbackAdapter(AsyncClosing, SyncClosing):
    """Several adapters used as one: if a member fails, the next member is tried. Created by `sabir.fallback`.

    Only the errors in `fallback_on` lead to the next member; all others are raised at once. If every member failed,
    `complete` and streams raise AllFailed, which names each member's error; if every member refused the conversation,
    RenderingRefused. `send` and `count_tokens` do not try another member if a request fails. Threads and tasks may
    share the adapter.
    """

    def __init__(
        self,
        members: Sequence[Adapter],
        owned: Sequence[Adapter],
        kinds: Kinds,
        speaks_as: str,
        order: Order | None = None,
    ) -> None:
        self._members = tuple(members)
        self._order = order
        self._speaks_as = speaks_as
        self._owned = tuple(owned)
        self._kinds = kinds
        self._refusals: Kinds = (RenderingRefused,) if issubclass(RenderingRefused, kinds) else ()

    @property
    def members(self) -> tuple[Adapter, ...]:
        """The adapters, in the order in which they were passed, and are tried if there is no `order`."""
        return self._members

    @property
    def speaks_as(self) -> str:
        """The policy whose messages the members send as the model's own."""
        return self._speaks_as

    @property
    def target(self) -> Target:
        """The target of the first member."""
        return self.members[0].target

    @property
    def targets(self) -> tuple[Target, ...]:
        """The targets of all members, in the order in which they are tried; a nested fallback contributes all of its
        targets.
        """
        return tuple(target for member in self.members for target in _targets(member))

    def __repr__(self) -> str:
        """Return the members' targets, without secrets."""
        return f"FallbackAdapter({', '.join(repr(str(member.target)) for member in self.members)})"

    def render(self, messages: Messages, **how: Unpack[CallArguments]) -> Rendering:
        """Return the request of the first member that accepts the conversation. Needs no API key and sends nothing.

        Raises RenderingRefused if every member refuses, or if the first refuses and `fallback_on` does not contain
        RenderingRefused. Raises SettingsInvalid, WrongWord or OptionInvalid for wrong arguments.
        """
        rendering: Rendering = next(self._attempts("render", messages, how, self._refusals)).answer
        return rendering

    async def complete(self, messages: Messages, **how: Unpack[CallArguments]) -> Reply:
        """Send a conversation to one member after another, and return the first reply.

        `reply.failed_members` lists the members that failed before. Raises AllFailed if every member failed,
        RenderingRefused if every member refused the conversation, and at once an error that is not in `fallback_on`.
        """
        return _with_failed(*await _await_first(self._attempts("complete", messages, how, self._kinds)))

    def complete_sync(self, messages: Messages, **how: Unpack[CallArguments]) -> Reply:
        """Sync version of `complete`. Blocks the thread."""
        return _with_failed(*next(self._attempts("complete_sync", messages, how, self._kinds)))

    async def send(self, rendering: Rendering) -> Reply:
        """Send a rendering, unchanged, with the first member that has the rendering's target. No other member is tried.

        Raises SettingsInvalid for a rendering of another target, and CallError if the call fails.
        """
        return await self._member_of(rendering).send(rendering)

    def send_sync(self, rendering: Rendering) -> Reply:
        """Sync version of `send`. Blocks the thread."""
        return self._member_of(rendering).send_sync(rendering)

    def stream(self, messages: Messages | Rendering, **how: Unpack[CallArguments]) -> ReplyStream:
        """Return a stream, which passes on the events of the first member that sends one. After an event, no other
        member is tried.

        Raises the same errors as `render`. Reading events raises AllFailed if every member failed before its first
        event, and at once an error that is not in `fallback_on` or that comes after the first event. A rendering is
        sent only with the first member that has the rendering's target.
        """
        if isinstance(messages, Rendering):
            return self._member_of(messages).stream(messages, **how)
        relay = _FallbackRelay(self._attempts("stream", messages, how, self._kinds))
        return ReplyStream(relay, relay.start)

    def stream_sync(self, messages: Messages | Rendering, **how: Unpack[CallArguments]) -> SyncReplyStream:
        """Sync version of `stream`. Reading blocks the thread."""
        if isinstance(messages, Rendering):
            return self._member_of(messages).stream_sync(messages, **how)
        relay = _FallbackRelay(self._attempts("stream_sync", messages, how, self._kinds))
        return SyncReplyStream(relay, relay.start)

    async def count_tokens(self, messages: Messages, **how: Unpack[CallArguments]) -> TokenCount:
        """Return the number of input tokens for the first member that accepts the conversation.

        If counting fails, no other member is tried, because other models count differently. Raises SettingsInvalid if
        that member, or a member before it, has no `count_tokens`, and the same errors as `render`.
        """
        attempts: Attempts[Coroutine[Any, Any, TokenCount]] = self._attempts(
            "count_tokens", messages, how, self._refusals, require_token_counter
        )
        return (await _await_first(attempts)).answer

    def count_tokens_sync(self, messages: Messages, **how: Unpack[CallArguments]) -> TokenCount:
        """Sync version of `count_tokens`. Blocks the thread."""
        count: TokenCount = next(
            self._attempts("count_tokens_sync", messages, how, self._refusals, require_token_counter)
        ).answer
        return count

    async def aclose(self) -> None:
        """Call `aclose` of the members that were created from strings. Adapters that you passed stay open."""
        async with AsyncExitStack() as closing:
            for member in self._owned:
                closing.push_async_callback(member.aclose)

    def close(self) -> None:
        """Close the sync clients of the members that were created from strings. After async calls, use `aclose`
        instead.
        """
        with ExitStack() as closing:
            for member in self._owned:
                closing.callback(member.close)

    def _attempts(
        self,
        name: str,
        messages: Messages,
        how: CallArguments,
        kinds: Kinds,
        checked: Callable[[Adapter], object] = lambda member: member,
    ) -> Attempts[Any]:
        """Return the generator `try_members` that calls the members' method `name`. Before, `checked` is called with
        the member.

        All members get the same messages with the same ids, and the options as a tuple. `extra_body` and
        `extra_headers` of the call are for the first member that was passed, so the others do not get them.
        """
        Settings.refuse_misnamed(name, how, tuple(CallArguments.__annotations__))
        listed = as_messages(messages)
        if "options" in how:
            how = {**how, "options": Option.all_of(how["options"] or ())}
        first, others = self.members[0], how
        if settings := how.get("settings"):
            others = {**how, "settings": settings.owned_by(_first_key(first))}

        def ask(method: str, member: Adapter) -> Any:
            return getattr(checked(member), method)(listed, **(how if member is first else others))

        return try_members(self._sorted(partial(ask, "render")), kinds, partial(ask, name))

    def _sorted(self, render: Callable[[Adapter], Rendering]) -> Sequence[Adapter]:
        """Return the members in the order in which they are tried. Members that refuse the conversation come last."""
        if self._order is None:
            return self.members
        keys: list[tuple[Sortable, Adapter]] = []
        refusing: list[Adapter] = []
        for member in self.members:
            try:
                keys.append((self._order(render(member)), member))
            except RenderingRefused:
                refusing.append(member)
        return [member for _, member in sorted(keys, key=itemgetter(0))] + refusing

    def _member_of(self, rendering: Rendering) -> Adapter:
        """Return the first member with the rendering's target. Raises SettingsInvalid if there is none."""
        for member in self.members:
            if rendering.target in _targets(member):
                return member
        known = ", ".join(f"{target} ({target.dialect})" for target in self.targets)
        made_for = f"{rendering.target} ({rendering.target.dialect})"
        raise SettingsInvalid(f"the rendering is for {made_for}, the members are {known}; render with this fallback")


def _targets(member: Adapter) -> tuple[Target, ...]:
    targets: tuple[Target, ...] = getattr(member, "targets", (member.target,))  # of a fallback, also in a wrapper
    return targets


def require_token_counter(member: Adapter) -> Counting:
    """Return the adapter if it has the methods of Counting. Raises SettingsInvalid if it does not."""
    if isinstance(member, Counting):
        return member
    raise SettingsInvalid(f"the adapter of {member.target} cannot count tokens; use an adapter from sabir.adapter")


@show_arguments
def fallback(
    *members: str | Adapter,
    speaks_as: str = "llm",
    settings: Settings | None = None,
    strict: Strict = False,
    fallback_on: Collection[type[SabirError]] | None = None,
    order: Order | None = None,
    **misnamed: Never,
) -> FallbackAdapter:
    """Return an adapter that tries its members in order until one answers. Each member is `provider:model` or an
    adapter.

    A member's own retries come first (`Settings.retries`). `fallback_on` lists the errors (and their subclasses) after
    which the next member is tried; None means FALLBACK_ON. All other errors raise at once. With the default, a member
    that refuses the conversation, because of `strict` or because nothing can be sent, is skipped. A stream switches
    members only before its first event.

    `order` is a function that returns a sort key for a member's rendering, such as `fewest_losses` or
    `sabir_prices.cheapest`. For each call, every member renders the conversation, which sends nothing, and the member
    with the smallest key is tried first. Members with equal keys keep their order, and members that refuse the
    conversation come last.

    `speaks_as`, `settings` and `strict` apply to the members given as strings. `extra_body` and `extra_headers` of the
    settings go to the first of these members only; use `extra_body_for` and `extra_headers_for` for others. To pass a
    key or an endpoint, create the member with `sabir.adapter(…)`, and close the member yourself.

    Raises SettingsInvalid for fewer than two members, for a member of a wrong type, for members with different
    `speaks_as`, for a `fallback_on` that is not a collection of sabir's error classes, and if `speaks_as`, `settings`
    or `strict` is passed but all members are adapters. Also raises the errors of `sabir.adapter`.

    >>> import sabir
    >>> llm = sabir.fallback("echo:large", "echo:small")
    >>> llm.complete_sync("Hello!").origin.model
    'large'
    """
    for name in misnamed:
        if name in _MEMBER_ARGUMENTS:
            remedy = f"replace that member with sabir.adapter('provider:model', {name}=…)"
            raise WrongWord(f"fallback() has no argument `{name}`, which belongs to one provider; {remedy}")
    Settings.refuse_misnamed("fallback", misnamed, _ARGUMENTS)
    _check_members(members)
    kinds = _check_kinds(FALLBACK_ON if fallback_on is None else fallback_on)
    make = partial(adapter, speaks_as=speaks_as, settings=settings, strict=strict)
    adapters: list[Adapter] = []
    owned: list[Adapter] = []
    for member in members:
        if not isinstance(member, str):
            adapters.append(member)
            continue
        later = settings.owned_by(_first_key(owned[0])) if settings and owned else settings
        owned.append(make(member, settings=later))
        adapters.append(owned[-1])
    unused = [name for name, value in make.keywords.items() if value not in ("llm", None, False)]
    if unused and not owned:
        raise SettingsInvalid(f"{', '.join(unused)}: all members are adapters; pass it to each sabir.adapter(…)")
    # A member without the attribute `speaks_as` counts as having the others' value.
    voices = {voice for member in adapters if isinstance(voice := getattr(member, "speaks_as", None), str)}
    if len(voices) > 1:
        raise SettingsInvalid(f"the members have different speaks_as: {', '.join(sorted(voices))}; use one for all")
    return FallbackAdapter(adapters, owned, kinds, next(iter(voices), "llm"), order)


def _check_members(members: Sequence[object]) -> None:
    for number, candidate in enumerate(members, 1):
        is_adapter = not isinstance(candidate, type) and callable(getattr(candidate, "complete", None))
        if not isinstance(candidate, str) and not is_adapter:
            remedy = "pass 'provider:model' strings or adapters as separate arguments"
            raise SettingsInvalid(f"member {number} of the fallback is of type {type(candidate).__name__}; {remedy}")
    if len(members) < 2:
        raise SettingsInvalid(f"a fallback needs two members or more, not {len(members)}; add a 'provider:model'")


def _check_kinds(fallback_on: object) -> Kinds:
    if isinstance(fallback_on, Iterable):
        kinds = tuple(fallback_on)
        if all(isinstance(kind, type) and issubclass(kind, SabirError) for kind in kinds):
            return kinds
    remedy = "pass sabir's error classes, for example [sabir.errors.Overloaded]"
    raise SettingsInvalid(f"fallback_on is {fallback_on!r}; {remedy}")
