"""An adapter around an adapter: it fetches media that its target takes only as bytes; nothing else fetches.

    message with a web URL ──render──▶ lost? ──a stand-in's bytes──▶ taken? ──fetcher──▶ message with a data URL, a loss

To find out what a target takes, the wrapped adapter renders the conversation, and again with stand-ins in place of lost
media. A derived message is kept as long as its original lives, so that equal histories stay identical and nothing is
fetched twice. Rendering itself never fetches.
"""

import weakref
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import NamedTuple, TypeAlias, Unpack

from sabir import (
    Adapter,
    CallError,
    Loss,
    MediaPart,
    Message,
    Option,
    Rendering,
    RenderingRefused,
    Reply,
    ReplyStream,
    SyncReplyStream,
)
from sabir.authoring import (
    CallArguments,
    DataURL,
    MediaURL,
    Messages,
    Performer,
    Relay,
    Script,
    TokenCount,
    WrappedAdapter,
    as_messages,
)

from sabir_media.fetcher import GuardedFetcher
from sabir_media.steps import FetchedMedia, Fetcher

Wanted: TypeAlias = Mapping[int, Mapping[int, MediaPart]]
"""Index of an inspected message → index of each part to fetch → the part."""


class Derived(NamedTuple):
    """Messages with their media as bytes, and the losses of that rewriting."""

    messages: list[Message]
    losses: tuple[Loss, ...] = ()

    def adapt_reply(self, reply: Reply) -> Reply:
        """The reply, telling what was rewritten too."""
        return reply.model_copy(update={"losses": (*self.losses, *reply.losses)}) if self.losses else reply

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """A context for a request: its error also reports the losses of the rewriting."""
        try:
            yield
        except CallError as error:
            error.losses = (*self.losses, *error.losses)
            raise


class _Kept(NamedTuple):
    original: weakref.ref[Message]
    message: Message
    losses: tuple[Loss, ...]


class FetchingAdapter(WrappedAdapter):
    """An adapter that fetches media for another; made by `fetching`.

    Its methods raise the wrapped adapter's errors, and MediaRefused for media that cannot be fetched. `render` fetches
    nothing: call `fetch_media` first to render the bytes of media.
    """

    def __init__(self, adapter: Adapter, fetcher: Fetcher) -> None:
        super().__init__(adapter)
        self._fetcher = fetcher
        self._kept: dict[int, _Kept] = {}
        self._lock = Lock()

    def __repr__(self) -> str:
        """Show the wrapped adapter."""
        return f"fetching({self.inner!r})"

    async def fetch_media(self, messages: Messages) -> list[Message]:
        """The messages, with media as bytes if the target takes them only so."""
        return (await self._fetched(as_messages(messages), {})).messages

    def fetch_media_sync(self, messages: Messages) -> list[Message]:
        """As `fetch_media`, waiting."""
        return self._fetched_sync(as_messages(messages), {}).messages

    async def complete(self, messages: Messages, **how: Unpack[CallArguments]) -> Reply:
        """Fetch, render and send."""
        derived = await self._fetched(*_prepared(messages, how))
        with derived.blamed():
            return derived.adapt_reply(await self.inner.complete(derived.messages, **how))

    def complete_sync(self, messages: Messages, **how: Unpack[CallArguments]) -> Reply:
        """As `complete`, waiting."""
        derived = self._fetched_sync(*_prepared(messages, how))
        with derived.blamed():
            return derived.adapt_reply(self.inner.complete_sync(derived.messages, **how))

    def stream(self, messages: Messages | Rendering, **how: Unpack[CallArguments]) -> ReplyStream:
        """Fetch, render and send; the reply as it comes. Media are fetched when its first event is asked for."""
        if isinstance(messages, Rendering):
            return self.inner.stream(messages, **how)
        given, how = _prepared(messages, how)
        wanted = self._wanted(given, how)

        async def opened() -> tuple[Derived, ReplyStream]:
            derived = await self._fetched(given, how)
            return derived, self.inner.stream(derived.messages, **how)

        if not any(wanted.values()):  # nothing to fetch: a refusal is raised here
            derived = self._derived(given, how, wanted, {})
            relay = _Fetching(derived, self.inner.stream(derived.messages, **how))
        else:
            relay = _Fetching(Derived(given), self.inner.stream(given, **_loosely(how)), opened)
        return ReplyStream(relay, relay.start)

    def stream_sync(self, messages: Messages | Rendering, **how: Unpack[CallArguments]) -> SyncReplyStream:
        """As `stream`, waiting; media are fetched at once."""
        if isinstance(messages, Rendering):
            return self.inner.stream_sync(messages, **how)
        derived = self._fetched_sync(*_prepared(messages, how))
        relay = _Fetching(derived, self.inner.stream_sync(derived.messages, **how))
        return SyncReplyStream(relay, relay.start)

    async def count_tokens(self, messages: Messages, **how: Unpack[CallArguments]) -> TokenCount:
        """Fetch media, and count the tokens; raises SettingsInvalid if the wrapped adapter cannot count."""
        derived = await self._fetched(*_prepared(messages, how))
        return await super().count_tokens(derived.messages, **how)

    def count_tokens_sync(self, messages: Messages, **how: Unpack[CallArguments]) -> TokenCount:
        """Fetch media, and count the tokens; the sync form of `count_tokens`."""
        derived = self._fetched_sync(*_prepared(messages, how))
        return super().count_tokens_sync(derived.messages, **how)

    async def _fetched(self, messages: list[Message], how: CallArguments) -> Derived:
        wanted = self._wanted(messages, how)
        fetched = {url: await self._fetcher.fetch(url) for url in _urls(wanted)}
        return self._derived(messages, how, wanted, fetched)

    def _fetched_sync(self, messages: list[Message], how: CallArguments) -> Derived:
        wanted = self._wanted(messages, how)
        fetched = {url: self._fetcher.fetch_sync(url) for url in _urls(wanted)}
        return self._derived(messages, how, wanted, fetched)

    def _wanted(self, messages: list[Message], how: CallArguments) -> Wanted:
        """The parts to fetch of messages that were not inspected before."""
        there = {
            number: media
            for number, each in enumerate(messages)
            if self._find(each) is None and (media := _by_url(each))
        }
        if not there:
            return there
        probes = list(messages)
        for number, media in there.items():
            probes[number] = _replaced(messages[number], {index: _stand_in(part) for index, part in media.items()})
        taken = self._lost(messages, how) - self._lost(probes, how)
        return {
            number: {index: part for index, part in media.items() if (messages[number].id, f"parts[{index}]") in taken}
            for number, media in there.items()
        }

    def _lost(self, messages: list[Message], how: CallArguments) -> set[tuple[str, str]]:
        """Message id and path of everything that the target does not take as it is."""
        try:
            losses = self.inner.render(messages, **_loosely(how)).losses
        except RenderingRefused as refused:
            losses = refused.losses
        return {(loss.message_id, loss.path) for loss in losses if loss.kind in ("dropped", "downgraded")}

    def _derived(
        self, messages: list[Message], how: CallArguments, wanted: Wanted, fetched: Mapping[str, FetchedMedia]
    ) -> Derived:
        """The messages with fetched media in their place; messages without such media are unchanged."""
        derived: list[Message] = []
        losses: list[Loss] = []
        for number, message in enumerate(messages):
            kept = self._find(message) or (self._keep(message, wanted[number], fetched) if number in wanted else None)
            derived.append(kept.message if kept else message)
            losses += kept.losses if kept else ()
        RenderingRefused.check(losses, how.get("strict") or False, str(self.target))
        return Derived(derived, tuple(losses))

    def _find(self, message: Message) -> _Kept | None:
        kept = self._kept.get(id(message))
        return kept if kept is not None and kept.original() is message else None

    def _keep(self, message: Message, wanted: Mapping[int, MediaPart], fetched: Mapping[str, FetchedMedia]) -> _Kept:
        urls, losses = {}, []
        for index, part in wanted.items():
            medium = fetched[part.url]
            urls[index] = MediaURL(DataURL.from_bytes(medium.data, medium.mime)).check()
            reason = (
                f"{self.target.dialect} accepts no such {part.modality} by URL; {MediaURL(part.url).shown} was fetched"
            )
            losses.append(Loss(kind="rewritten", message_id=message.id, path=f"parts[{index}]", reason=reason))
        key = id(message)
        original = weakref.ref(message, lambda _: self._kept.pop(key, None))
        kept = _Kept(original, _replaced(message, urls), tuple(losses))
        with self._lock:  # the first one is kept: all callers share one derived message
            return self._find(message) or self._kept.setdefault(key, kept)


class _Fetching(Relay):
    """Relays the stream opened for fetched media; before, a stream for the unchanged media takes its place."""

    def __init__(
        self,
        derived: Derived,
        stream: ReplyStream | SyncReplyStream,
        opened: Callable[[], Awaitable[tuple[Derived, ReplyStream]]] | None = None,
    ) -> None:
        super().__init__(stream)
        self._derived = derived
        self._opened = opened

    def adapt_reply(self, reply: Reply) -> Reply:
        """The reply, telling what was rewritten too."""
        return self._derived.adapt_reply(reply)

    async def start(self) -> tuple[Script[Reply], Performer]:
        """Fetch, and open the stream."""
        if self._opened:
            self._derived, self.stream = await self._opened()
        return await super().start()

    def script(self) -> Script[Reply]:
        """Passes the events on."""
        with self._derived.blamed():
            return (yield from super().script())


def fetching(adapter: Adapter, fetcher: Fetcher | None = None) -> FetchingAdapter:
    """The adapter, with media fetched that its target takes only as bytes; by default with a GuardedFetcher."""
    return FetchingAdapter(adapter, GuardedFetcher() if fetcher is None else fetcher)


def _prepared(messages: Messages, how: CallArguments) -> tuple[list[Message], CallArguments]:
    """Arguments that can be rendered more than once: a list of messages, and a list of options."""
    if "options" in how:
        how["options"] = Option.all_of(how["options"] or ())
    return as_messages(messages), how


def _loosely(how: CallArguments) -> CallArguments:
    loosely = how.copy()
    loosely["strict"] = False
    return loosely


def _by_url(message: Message) -> Mapping[int, MediaPart]:
    """The media of a message that a web URL names, by their index."""
    media = ((index, part) for index, part in enumerate(message.parts) if isinstance(part, MediaPart))
    return {index: part for index, part in media if part.form == "url"}


def _urls(wanted: Wanted) -> Iterable[str]:
    """The URLs to fetch, each once."""
    return dict.fromkeys(part.url for media in wanted.values() for part in media.values())


def _stand_in(part: MediaPart) -> str:
    """A data URL of the type that a part has, or may have."""
    return DataURL.from_bytes(b"\0", part.likely_mime)


def _replaced(message: Message, urls: Mapping[int, str]) -> Message:
    """The message with other URLs for some of its media; itself where there are none."""
    if not urls:
        return message
    parts = [
        part.model_copy(update={"url": urls[index]}) if index in urls else part
        for index, part in enumerate(message.parts)
    ]
    payload = message.payload.model_copy(update={"parts": tuple(parts)})
    return message.model_copy(update={"payload": payload})
