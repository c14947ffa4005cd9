"""A wrapper around an adapter that downloads media which the model's API accepts only as bytes.

    message with a web URL ──render──▶ lost? ──placeholder bytes──▶ accepted? ──fetcher──▶ data URL, and a loss

To find out what the API accepts, the wrapped adapter renders the conversation, and renders it again with placeholder
bytes in place of URLs. A changed message is stored as long as its original exists, so that the same history gives the
same messages, and a later call does not download its media again. Rendering never downloads.
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
from sabir.errors import MediaRefused

from sabir_media.fetcher import GuardedFetcher
from sabir_media.steps import FetchedMedia, Fetcher

WantedMedia: TypeAlias = Mapping[int, Mapping[int, MediaPart]]
"""Index of a message that was inspected → index of each part to download → the part. Empty for a message without such
parts.
"""


class FetchedMessages(NamedTuple):
    """The messages with downloaded media as data URLs, and the losses that report the downloads."""

    messages: list[Message]
    losses: tuple[Loss, ...] = ()

    def adapt_reply(self, reply: Reply) -> Reply:
        """Return the reply with the losses of the downloads added."""
        return reply.model_copy(update={"losses": (*self.losses, *reply.losses)}) if self.losses else reply

    @contextmanager
    def add_losses_to_errors(self) -> Iterator[None]:
        """Add the losses of the downloads to a CallError that is raised in the `with` block."""
        try:
            yield
        except CallError as error:
            error.losses = (*self.losses, *error.losses)
            raise


class _FetchedMessage(NamedTuple):
    """A message with downloaded media, which is cached as long as its original exists."""

    original: weakref.ref[Message]
    message: Message
    losses: tuple[Loss, ...]


class FetchingAdapter(WrappedAdapter):
    """An adapter that downloads media before the wrapped adapter sends them. Created by `fetching`.

    Only media that the model's API accepts as bytes but not by URL are downloaded. The methods raise the wrapped
    adapter's errors, and MediaRefused for media that cannot be downloaded. `render` and `send` download nothing. To
    render with the bytes of media, pass `render` the messages that `fetch_media` returns.
    """

    def __init__(self, adapter: Adapter, fetcher: Fetcher) -> None:
        super().__init__(adapter)
        self._fetcher = fetcher
        self._fetched_messages: dict[int, _FetchedMessage] = {}
        self._lock = Lock()

    def __repr__(self) -> str:
        """Show the wrapped adapter."""
        return f"fetching({self.inner!r})"

    async def fetch_media(self, messages: Messages) -> list[Message]:
        """Download the media that the API accepts only as bytes, and return the messages with data URLs in place of the
        media's URLs. Other messages are returned unchanged. Raises MediaRefused if a download is not allowed or fails.
        """
        return (await self._fetch_all(as_messages(messages), {})).messages

    def fetch_media_sync(self, messages: Messages) -> list[Message]:
        """Sync version of `fetch_media`. Blocks the thread."""
        return self._fetch_all_sync(as_messages(messages), {}).messages

    async def complete(self, messages: Messages, **how: Unpack[CallArguments]) -> Reply:
        """Download media, send the conversation and return the reply. The reply has a loss (kind "rewritten") for each
        downloaded medium. The argument `strict` can refuse these losses, after the downloads.
        """
        derived = await self._fetch_all(*_as_lists(messages, how))
        with derived.add_losses_to_errors():
            return derived.adapt_reply(await self.inner.complete(derived.messages, **how))

    def complete_sync(self, messages: Messages, **how: Unpack[CallArguments]) -> Reply:
        """Sync version of `complete`. Blocks the thread."""
        derived = self._fetch_all_sync(*_as_lists(messages, how))
        with derived.add_losses_to_errors():
            return derived.adapt_reply(self.inner.complete_sync(derived.messages, **how))

    def stream(self, messages: Messages | Rendering, **how: Unpack[CallArguments]) -> ReplyStream:
        """Download media, send the conversation and stream the reply. Reading the first event begins the downloads, and
        raises their errors. A Rendering is sent unchanged.
        """
        if isinstance(messages, Rendering):
            return self.inner.stream(messages, **how)
        history, how = _as_lists(messages, how)
        wanted = self._find_wanted(history, how)

        async def fetch_and_open() -> tuple[FetchedMessages, ReplyStream]:
            derived = await self._fetch_all(history, how)
            return derived, self.inner.stream(derived.messages, **how)

        if not any(wanted.values()):  # nothing to fetch: a refusal is raised here
            derived = self._derive_messages(history, how, wanted, {})
            relay = _FetchingRelay(derived, self.inner.stream(derived.messages, **how))
        else:
            unsent = self.inner.stream(history, **_without_strict(how))
            relay = _FetchingRelay(FetchedMessages(history), unsent, fetch_and_open)
        return ReplyStream(relay, relay.start)

    def stream_sync(self, messages: Messages | Rendering, **how: Unpack[CallArguments]) -> SyncReplyStream:
        """Sync version of `stream`, except that `stream_sync` downloads the media, and raises the errors of the
        downloads, before it returns. Blocks the thread.
        """
        if isinstance(messages, Rendering):
            return self.inner.stream_sync(messages, **how)
        derived = self._fetch_all_sync(*_as_lists(messages, how))
        relay = _FetchingRelay(derived, self.inner.stream_sync(derived.messages, **how))
        return SyncReplyStream(relay, relay.start)

    async def count_tokens(self, messages: Messages, **how: Unpack[CallArguments]) -> TokenCount:
        """Download media and count the tokens of the conversation. Raises SettingsInvalid if the wrapped adapter cannot
        count tokens.
        """
        derived = await self._fetch_all(*_as_lists(messages, how))
        return await super().count_tokens(derived.messages, **how)

    def count_tokens_sync(self, messages: Messages, **how: Unpack[CallArguments]) -> TokenCount:
        """Sync version of `count_tokens`. Blocks the thread."""
        derived = self._fetch_all_sync(*_as_lists(messages, how))
        return super().count_tokens_sync(derived.messages, **how)

    async def _fetch_all(self, messages: list[Message], how: CallArguments) -> FetchedMessages:
        wanted = self._find_wanted(messages, how)
        fetched = {url: await self._fetcher.fetch(url) for url in _distinct_urls(wanted)}
        return self._derive_messages(messages, how, wanted, fetched)

    def _fetch_all_sync(self, messages: list[Message], how: CallArguments) -> FetchedMessages:
        wanted = self._find_wanted(messages, how)
        fetched = {url: self._fetcher.fetch_sync(url) for url in _distinct_urls(wanted)}
        return self._derive_messages(messages, how, wanted, fetched)

    def _find_wanted(self, messages: list[Message], how: CallArguments) -> WantedMedia:
        """Return the parts to download in messages that were not inspected before."""
        candidates = {
            number: media
            for number, each in enumerate(messages)
            if self._find_fetched(each) is None and (media := _web_media(each))
        }
        if not candidates:
            return candidates
        probes = list(messages)
        for number, media in candidates.items():
            placeholders = {index: _placeholder_url(part) for index, part in media.items()}
            probes[number] = _replace_urls(messages[number], placeholders)
        fetchable = self._find_unsupported(messages, how) - self._find_unsupported(probes, how)
        return {
            number: {index: media[index] for index in media if (messages[number].id, f"parts[{index}]") in fetchable}
            for number, media in candidates.items()
        }

    def _find_unsupported(self, messages: list[Message], how: CallArguments) -> set[tuple[str, str]]:
        """Return (message id, path) of every loss of the kind "dropped" or "downgraded" if the messages are
        rendered.
        """
        try:
            losses = self.inner.render(messages, **_without_strict(how)).losses
        except RenderingRefused as refused:
            losses = refused.losses
        return {(loss.message_id, loss.path) for loss in losses if loss.kind in ("dropped", "downgraded")}

    def _derive_messages(
        self, messages: list[Message], how: CallArguments, wanted: WantedMedia, fetched: Mapping[str, FetchedMedia]
    ) -> FetchedMessages:
        """Return the messages with the downloaded media; messages without such media are unchanged. Raises
        RenderingRefused if `strict` refuses the losses.
        """
        derived: list[Message] = []
        losses: list[Loss] = []
        for number, message in enumerate(messages):
            cached = self._find_fetched(message)
            if cached is None and number in wanted:
                cached = self._store_fetched(message, wanted[number], fetched)
            derived.append(cached.message if cached else message)
            losses += cached.losses if cached else ()
        RenderingRefused.check(losses, how.get("strict") or False, str(self.target))
        return FetchedMessages(derived, tuple(losses))

    def _find_fetched(self, message: Message) -> _FetchedMessage | None:
        cached = self._fetched_messages.get(id(message))
        return cached if cached is not None and cached.original() is message else None

    def _store_fetched(
        self, message: Message, wanted: Mapping[int, MediaPart], fetched: Mapping[str, FetchedMedia]
    ) -> _FetchedMessage:
        """Cache and return the changed copy of a message. If another caller stored a copy first, return that one."""
        urls, losses = {}, []
        for index, part in wanted.items():
            medium = fetched[part.url]
            urls[index] = MediaURL(DataURL.from_bytes(medium.data, medium.mime)).check()
            reason = (
                f"{self.target.dialect} does not accept this {part.modality} by URL; "
                f"{MediaURL(part.url).shown} was downloaded and its bytes were sent"
            )
            losses.append(Loss(kind="rewritten", message_id=message.id, path=f"parts[{index}]", reason=reason))
        key = id(message)
        original = weakref.ref(message, lambda _: self._fetched_messages.pop(key, None))
        cached = _FetchedMessage(original, _replace_urls(message, urls), tuple(losses))
        with self._lock:  # the first changed message is stored, so that all callers get the same object
            return self._find_fetched(message) or self._fetched_messages.setdefault(key, cached)


class _FetchingRelay(Relay):
    """Relays the events of the stream that is opened after the downloads. Until then, `stream` is a stream for the
    unchanged messages, which is never sent.
    """

    def __init__(
        self,
        derived: FetchedMessages,
        stream: ReplyStream | SyncReplyStream,
        fetch_and_open: Callable[[], Awaitable[tuple[FetchedMessages, ReplyStream]]] | None = None,
    ) -> None:
        super().__init__(stream)
        self._fetched_messages = derived
        self._fetch_and_open = fetch_and_open

    def adapt_reply(self, reply: Reply) -> Reply:
        """Return the reply with the losses of the downloads added."""
        return self._fetched_messages.adapt_reply(reply)

    async def start(self) -> tuple[Script[Reply], Performer]:
        """Download media, and open the stream with the changed messages."""
        if self._fetch_and_open:
            self._fetched_messages, self.stream = await self._fetch_and_open()
        return await super().start()

    def script(self) -> Script[Reply]:
        """Yield the events of the stream. A CallError gets the losses of the downloads."""
        with self._fetched_messages.add_losses_to_errors():
            return (yield from super().script())


def fetching(adapter: Adapter, fetcher: Fetcher | None = None) -> FetchingAdapter:
    """Return an adapter that downloads the media which the model's API accepts only as bytes, and sends the bytes.
    Media that the API accepts by URL are sent as URLs.

    `fetcher` downloads the media, by default a GuardedFetcher with its default limits. Closing the returned adapter
    closes `adapter`.
    """
    return FetchingAdapter(adapter, GuardedFetcher() if fetcher is None else fetcher)


def _as_lists(messages: Messages, how: CallArguments) -> tuple[list[Message], CallArguments]:
    """Return the arguments with lists in place of iterators, so that they can be rendered more than once."""
    if "options" in how:
        how["options"] = Option.all_of(how["options"] or ())
    return as_messages(messages), how


def _without_strict(how: CallArguments) -> CallArguments:
    return {**how, "strict": False}


def _web_media(message: Message) -> Mapping[int, MediaPart]:
    """Return index → part for the media of a message that have a web URL, and a type that can be sent as bytes."""
    media = ((index, part) for index, part in enumerate(message.parts) if isinstance(part, MediaPart))
    return {index: part for index, part in media if part.form == "url" and _fits_bytes(part)}


def _fits_bytes(part: MediaPart) -> bool:
    """Return whether a part may contain bytes of its known or likely type; SVG images, for example, may not."""
    try:
        MediaURL(_placeholder_url(part)).check()
    except MediaRefused:
        return False
    return True


def _distinct_urls(wanted: WantedMedia) -> Iterable[str]:
    """Return the URLs to download, each once."""
    return dict.fromkeys(part.url for media in wanted.values() for part in media.values())


def _placeholder_url(part: MediaPart) -> str:
    """Return a data URL with one byte and the part's known or likely type."""
    return DataURL.from_bytes(b"\0", part.likely_mime)


def _replace_urls(message: Message, urls: Mapping[int, str]) -> Message:
    """Return the message with the URLs in `urls` (index of a part → URL). If `urls` is empty, return the same
    object.
    """
    if not urls:
        return message
    parts = [
        part.model_copy(update={"url": urls[index]}) if index in urls else part
        for index, part in enumerate(message.parts)
    ]
    payload = message.payload.model_copy(update={"parts": tuple(parts)})
    return message.model_copy(update={"payload": payload})
