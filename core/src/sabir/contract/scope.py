"""What encoders and decoders are told, and what they are given to encode.

Turn = side + entries          Entry = message + pieces (what this wire takes of it) + wire id + wire name
TurnScope    for a turn        equal scopes and equal turns give equal bytes
RequestScope for the rest      settings, options, hoisted system turns
DecodeScope  for an answer     who answered, for which policy, under which option names
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from sabir.base.failures import ResponseInvalid
from sabir.base.losses import Loss, LossKind
from sabir.base.values import FrozenDict, JSONValue
from sabir.contract.tables import Side, Tables
from sabir.vocabulary.messages import Message, OptionResultPayload, Origin
from sabir.vocabulary.parts import KnownPart
from sabir.vocabulary.settings import SettingsReader, UnsupportedMedia
from sabir.vocabulary.target import ModelInfo, Target

if TYPE_CHECKING:
    from sabir.options.option import Option

new_tuple = tuple.__new__
"""Makes a named tuple of all its values, without the function in Python that a call of its class goes through.

The number of values is not checked.
"""


class Entry(NamedTuple):
    """One message of a turn, with what is left of it for this wire."""

    message: Message
    pieces: tuple[KnownPart, ...] = ()
    """Parts that the target takes as they are, in order; unsupported ones are already replaced or reported."""
    wire_id: str = ""
    """A call's or result's id within the dialect's characters and length."""
    wire_name: str = ""
    """A call's or result's option name within the dialect's characters and length."""
    keeps_state: bool = False
    """Whether the message came from this very target and is said as its own, so that its state goes back."""
    call: "Entry | None" = None
    """For a result, the entry of its call."""

    @property
    def result(self) -> OptionResultPayload:
        """The result, in a turn of results."""
        result = self.message.payload
        assert result.kind == "option_result"
        return result


class Turn(NamedTuple):
    """Neighbouring messages of one side; results are in the order of their calls.

    Where the table of calls says so, what the user says stands behind them: entries without a `call`.

    A turn of which nothing is left is none, so that any side but results may follow any other. Where a wire forbids
    that, `encode_turn` puts a short item of the missing side before the turn's own (loss: synthesized).
    """

    side: Side
    entries: tuple[Entry, ...]
    follows: Side | None = None
    """The side of the turn before it that came to an item; None where there is none but hoisted ones."""


class LossLog:
    """Where encoders write down what the target cannot take."""

    __slots__ = ("losses",)

    def __init__(self) -> None:
        self.losses: list[Loss] = []

    def add(self, kind: LossKind, reason: str, *, message: Message | None = None, path: str = "") -> None:
        """Write down one loss."""
        self.losses.append(Loss(kind=kind, message_id=message.id if message else "", path=path, reason=reason))


Difference: TypeAlias = Literal["", "origin", "provider", "dialect", "endpoint", "model"]
MOST_MAKERS = 256
"""Of how many makers it is kept whether they are at home."""


def itself(model: str) -> str:
    """A model is a family of its own."""
    return model


def of_any_model(endpoint: str, model: str) -> str:
    """An endpoint is a place of its own, whatever the model."""
    return endpoint


@dataclass(frozen=True, slots=True)
class TurnScope:
    """All that the encoding of a turn may depend on besides the turn itself."""

    target: Target
    tables: Tables
    speaks_as: str = "llm"
    family: Callable[[str], str] = itself
    place: Callable[[str, str], str] = of_any_model
    model_info: ModelInfo = ModelInfo(prefix="")
    media_labels: bool = False
    unsupported_media: UnsupportedMedia = "placeholder"
    quirks: frozenset[str] = frozenset()
    """Deviations of this endpoint from the dialect, by names that the dialect defines."""
    declared_names: tuple[str, ...] = ()
    """Names of offered options that the wire cannot take as they are."""
    _seen: dict[tuple[str, ...], Difference] = field(default_factory=dict, init=False, repr=False, compare=False)

    def differs_by(self, origin: Origin | None) -> Difference:
        """What of an origin is another than here, so that its state stays behind; "" where it is this very target."""
        if origin is None:
            return "origin"
        made = origin.provider, origin.dialect, origin.endpoint, origin.model
        if (found := self._seen.get(made)) is None:
            if len(self._seen) >= MOST_MAKERS:
                self._seen.clear()
            found = self._seen[made] = self._difference(origin)
        return found

    def _difference(self, origin: Origin) -> Difference:
        target = self.target
        if origin.provider != target.provider or origin.dialect != target.dialect:
            return "provider" if origin.provider != target.provider else "dialect"
        if self.place(origin.endpoint, origin.model) != self.place(target.endpoint, target.model):
            return "endpoint"
        return "" if self.family(origin.model) == self.family(target.model) else "model"


Place: TypeAlias = Literal["closed", "end"]
"""Where a splice goes: at the end of the closed prefix, or of all messages."""


class Splice(NamedTuple):
    """Bytes to put into the messages as they are joined: markers that the kept prefix does not hold.

    They go before the last `before`, which is never empty, of the closed prefix (`at="closed"`) or of all messages
    (`at="end"`), which must end with it. Where they do not, or a splice is there already, it is a loss of that path.
    """

    at: Place
    before: bytes
    text: bytes
    path: str


@dataclass(slots=True)
class RequestScope:
    """What the rest of a request is made of: everything but the turns."""

    target: Target
    settings: SettingsReader
    options: tuple["Option", ...]
    option_names: Mapping[str, str]
    """Option name → the name on this wire, for every option offered."""
    system: tuple[Turn, ...]
    """The leading system turns, where the dialect hoists them; else empty."""
    vendor: FrozenDict
    """The settings under this provider's own name."""
    losses: LossLog
    model_info: ModelInfo = ModelInfo(prefix="")
    quirks: frozenset[str] = frozenset()
    last_side: Side | None = None
    """The side of the last turn that came to an item."""
    ending: Turn | None = None
    """What `last_turn` shows."""
    history: Sequence[Message] = ()
    """What `messages` shows."""
    names: frozenset[str] = frozenset()
    """What `called` shows."""
    saw_history: bool = False
    """Whether the last turn or the messages were looked at: such a head is made anew for each request."""
    saw_called: bool = False
    splices: list[Splice] = field(default_factory=list)
    """Markers to be put between the messages' bytes; the dialect adds to it."""
    closing: list[JSONValue] = field(default_factory=list)
    """Wire items to be sent after all turns; the dialect adds to it what no later request holds at that place."""
    headers: dict[str, str] = field(default_factory=dict)
    """Headers that the request needs beside its body; the dialect adds to it, and `extra_headers` come on top."""
    only_as_stream: bool = False
    """Set by the dialect where the answer may take too long to come at once: it is streamed, whoever asks."""

    @property
    def last_turn(self) -> Turn | None:
        """The last turn itself, where it is not within the closed prefix: whether a provider paused in it shows."""
        self.saw_history = True
        return self.ending

    @property
    def messages(self) -> Sequence[Message]:
        """All messages that were given: whether the server holds some of them shows."""
        self.saw_history = True
        return self.history

    @property
    def called(self) -> frozenset[str]:
        """Names of the options whose calls the request holds, offered or not."""
        self.saw_called = True
        return self.names


@dataclass(frozen=True, slots=True)
class DecodeScope:
    """Who answered, on behalf of which policy, and which options stand behind the wire's names."""

    target: Target
    policy: str = "llm"
    option_names: Mapping[str, str] = field(default_factory=dict)
    """Name on the wire → option name, where they differ."""
    request_id: str | None = None
    content_type: str = ""
    """What the answer says of its body; "" before there is one."""

    def invalid(self, said: str) -> ResponseInvalid:
        """The error for an answer that is none of the dialect's: what the target did, and the remedy."""
        target = self.target
        return ResponseInvalid(f"{target} {said}", provider=target.provider, request_id=self.request_id)

    def origin(self, model: str | None = None, response_id: str | None = None) -> Origin:
        """The origin of what this scope decodes; `model` is the name that the response gives.

        A deployment or an alias answers under another name than it was asked under. The name asked for counts, as it
        is the one that a later request will have.
        """
        target = self.target
        return Origin(
            provider=target.provider,
            dialect=target.dialect,
            endpoint=target.endpoint,
            model=target.model or model or "",
            reported_model=model if target.model and model != target.model else None,
            response_id=response_id,
        )
