"""Media that a target takes only as bytes, fetched by the fetcher that the user gave; without one nothing fetches.

    message with a web URL ──urls──▶ fetcher (sync or async) ──derive──▶ message with a data URL, same id, a loss

What was derived from a message is kept as long as that message lives, so that equal histories stay identical and
nothing is fetched twice. Rendering itself never fetches (law 6).
"""

import weakref
from collections.abc import Iterable, Mapping
from threading import Lock
from typing import NamedTuple

from sabir.base.losses import Loss
from sabir.contract.provider import FetchedMedia, Fetcher
from sabir.contract.scope import TurnScope
from sabir.rendering.pairing import side_of
from sabir.vocabulary.constructors import as_messages, listed
from sabir.vocabulary.media import check_url, form_of, make_data_url, shorten
from sabir.vocabulary.messages import Message
from sabir.vocabulary.parts import MediaPart


class Derived(NamedTuple):
    """Messages with their media as bytes, and what was rewritten for it."""

    messages: list[Message]
    losses: tuple[Loss, ...] = ()


class _Kept(NamedTuple):
    original: weakref.ref[Message]
    message: Message
    losses: tuple[Loss, ...]


class MediaFetching:
    """Finds what must be fetched for one target, and puts what came in its place. Thread-safe."""

    def __init__(self, fetcher: Fetcher | None, scope: TurnScope) -> None:
        self._fetcher = fetcher
        self._scope = scope
        self._kept: dict[int, _Kept] = {}
        self._lock = Lock()

    def fetch_sync(self, messages: list[Message]) -> Derived:
        """The messages with their media fetched; MediaRefused where that is not allowed or fails."""
        fetcher = self._fetcher
        fetched = {url: fetcher.fetch_sync(url) for url in self.urls(messages)} if fetcher else {}
        return self.derive(messages, fetched)

    async def fetch(self, messages: list[Message]) -> Derived:
        """As `fetch_sync`, in an event loop."""
        fetcher = self._fetcher
        fetched = {url: await fetcher.fetch(url) for url in self.urls(messages)} if fetcher else {}
        return self.derive(messages, fetched)

    def listed(self, messages: str | Message | Iterable[Message]) -> list[Message]:
        """The messages that a call was given. Who fetches looks at each; else rendering looks at those new to it."""
        return listed(messages) if self._fetcher is None else as_messages(messages)

    def urls(self, messages: Iterable[Message]) -> list[str]:
        """What is still to be fetched for these messages, each URL once; nothing without a fetcher."""
        if self._fetcher is None:
            return []
        missing = (message for message in messages if self._find(message) is None)
        return list(dict.fromkeys(part.url for message in missing for _, part in self._wanted(message)))

    def derive(self, messages: list[Message], fetched: Mapping[str, FetchedMedia]) -> Derived:
        """The messages with fetched media in their place; those without such media as they are."""
        if self._fetcher is None:
            return Derived(messages)
        derived: list[Message] = []
        losses: list[Loss] = []
        for message in messages:
            kept = self._find(message) or self._keep(message, fetched)
            derived.append(kept.message if kept else message)
            losses += kept.losses if kept else ()
        return Derived(derived, tuple(losses))

    def _wanted(self, message: Message) -> list[tuple[int, MediaPart]]:
        scope, modalities = self._scope, self._scope.model_info.modalities
        media = [(index, part) for index, part in enumerate(message.parts) if isinstance(part, MediaPart)]
        side = side_of(message, scope.speaks_as) if media else "user"
        wanted = []
        for index, part in media:
            rule = scope.tables.media.get((side, part.modality))
            is_read = modalities is None or part.modality in modalities
            if rule is None or rule.data is None or not is_read or form_of(part.url) != "url":
                continue
            if rule.refusal("url", part.mime) is not None:
                wanted.append((index, part))
        return wanted

    def _find(self, message: Message) -> _Kept | None:
        kept = self._kept.get(id(message))
        return kept if kept is not None and kept.original() is message else None

    def _keep(self, message: Message, fetched: Mapping[str, FetchedMedia]) -> _Kept | None:
        wanted = self._wanted(message)
        if not wanted or message.payload.kind == "option_call":
            return None
        parts, losses = list(message.payload.parts), []
        for index, part in wanted:
            medium = fetched[part.url]
            url = check_url(make_data_url(medium.data, medium.mime))
            parts[index] = part.model_copy(update={"url": url})
            reason = (
                f"{self._scope.target.dialect} takes no such {part.modality} by URL; {shorten(part.url)} was fetched"
            )
            losses.append(Loss(kind="rewritten", message_id=message.id, path=f"parts[{index}]", reason=reason))
        payload = message.payload.model_copy(update={"parts": tuple(parts)})
        key = id(message)
        original = weakref.ref(message, lambda _: self._kept.pop(key, None))
        kept = _Kept(original, message.model_copy(update={"payload": payload}), tuple(losses))
        with self._lock:
            # Whoever came first keeps its place: all callers share one derived message.
            earlier = self._find(message)
            if earlier is None:
                self._kept[key] = kept
        return earlier or kept
