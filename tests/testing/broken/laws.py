"""Dialects that break a law, one each, where no question of the other families has it.

what they do wrong shows in some random histories only: odd names, a third policy, ids used again, turns by the dozen
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from email.utils import parsedate_to_datetime
from itertools import count
from typing import Any

from sabir.contract.dialect import DecodedHistory
from sabir.contract.scope import DecodeScope, RequestScope, Splice
from sabir.contract.turns import Entry, LossLog, Turn, TurnScope
from sabir.errors import CallError
from sabir.reading.fold import ReplyBuilder
from sabir.vocabulary.messages import Message, Origin
from sabir.vocabulary.reply import Reply, ReplyEnd, ReplyStart
from sabir_testing.kit.suite import Suite

from tests.testing.harness import Breakage, Delegate

Items = Sequence[Any]
MANY_TURNS = 5
"""More than any recorded question has."""
FIELDS = (
    "model", "instructions", "turns", "tools", "choice", "shape", "limit", "temperature", "top_p", "stops", "seed",
    "effort", "parallel", "tier", "stream",
)  # fmt: skip


def is_thirds(entry: Entry) -> bool:
    """Whether neither the user nor the model said it, but another policy."""
    return entry.message.policy == "planner"


class NamesLost(Delegate):
    """Results of options that had to be renamed are left out; a loss says so, but their calls stay."""

    def encode_turn(self, turn: Turn, scope: TurnScope, losses: LossLog) -> Items:
        kept = []
        for entry in turn.entries:
            result = entry.message.result
            if result is not None and entry.call and entry.call.message.call.option_name != entry.wire_name:
                losses.add("dropped", "no option of that name", message=entry.message)
            else:
                kept.append(entry)
        found: Items = self.base.encode_turn(turn._replace(entries=tuple(kept)), scope, losses) if kept else []
        return found


class GivenIds(Delegate):
    """Calls and results are sent with the ids that the history gives them."""

    def encode_turn(self, turn: Turn, scope: TurnScope, losses: LossLog) -> Items:
        entries = tuple(entry._replace(wire_id=_given(entry.message) or entry.wire_id) for entry in turn.entries)
        found: Items = self.base.encode_turn(turn._replace(entries=entries), scope, losses)
        return found


def _given(message: Message) -> str:
    chosen = message.call or message.result
    return chosen.invocation_id if chosen else ""


class Hintless(Delegate):
    """Words under a role hint are left out, silently."""

    def encode_turn(self, turn: Turn, scope: TurnScope, losses: LossLog) -> Items:
        kept = tuple(each for each in turn.entries if each.wire_id or not each.message.role_hint_for_llm)
        found: Items = self.base.encode_turn(turn._replace(entries=kept), scope, losses) if kept else []
        return found


class Signing(Delegate):
    """Items say which policy spoke, where it is a third; the vendor does not know the field."""

    def encode_turn(self, turn: Turn, scope: TurnScope, losses: LossLog) -> Items:
        named = {"who": "planner"} if any(map(is_thirds, turn.entries)) else {}
        return [{**item, **named} for item in self.base.encode_turn(turn, scope, losses)]


def refuses_unknown_fields(suite: Suite, body: bytes) -> None:
    """What a vendor's own types would say of an item."""
    for item in json.loads(body)["turns"]:
        assert set(item) == {"by", "parts"}, f"extra fields in {sorted(item)}"


class Marking(Delegate):
    """The end of what is closed is marked, unasked, where this side speaks last and no limit is set."""

    side = ""

    def encode_request(self, scope: RequestScope) -> Mapping[str, Any]:
        if scope.last_side == self.side and scope.settings.take("max_output_tokens") is None:
            scope.splices.append(Splice("closed", b"}", b',"cached":true', ""))
        found: Mapping[str, Any] = self.base.encode_request(scope)
        return found


class MarkingResults(Delegate):
    """The last item is marked, unasked, where results are last and no limit is set: the next request has it bare."""

    def encode_request(self, scope: RequestScope) -> Mapping[str, Any]:
        if scope.last_side == "results" and scope.settings.take("max_output_tokens") is None:
            scope.splices.append(Splice("end", b"}", b',"last":true', ""))
        found: Mapping[str, Any] = self.base.encode_request(scope)
        return found


class Bare(Delegate):
    """A result that is no text goes out as the value that it is, where the wire wants a text."""

    def encode_turn(self, turn: Turn, scope: TurnScope, losses: LossLog) -> Items:
        found: Items = self.base.encode_turn(turn, scope, losses)
        if turn.side == "results":
            for entry, sent in zip(turn.entries, found[0]["parts"], strict=True):
                if not (entry.pieces or entry.message.result.is_error):
                    sent["parts"][0]["text"] = entry.message.result.result
        return found


def refuses_bare_values(suite: Suite, body: bytes) -> None:
    """What a vendor's own types would say of a result."""
    for sent in [part for item in json.loads(body)["turns"] for part in item["parts"] if part["type"] == "result"]:
        for part in sent["parts"]:
            assert isinstance(part.get("text", ""), str), f"a text of type {type(part['text']).__name__}"


class MarkingForUsers(Marking):
    side = "user"


class MarkingForModels(Marking):
    side = "assistant"


class Counting(Delegate):
    """Turns are numbered as they are encoded, not as they stand; a long conversation shows it."""

    number = 0

    def encode_turn(self, turn: Turn, scope: TurnScope, losses: LossLog) -> Items:
        self.number += 1
        named = {"number": self.number} if self.number > MANY_TURNS else {}
        return [{**item, **named} for item in self.base.encode_turn(turn, scope, losses)]

    def encode_request(self, scope: RequestScope) -> Mapping[str, Any]:
        self.number = 0
        found: Mapping[str, Any] = self.base.encode_request(scope)
        return found


class Timing(Delegate):
    """A turn's encoding is timed."""

    def encode_turn(self, turn: Turn, scope: TurnScope, losses: LossLog) -> Items:
        self.started = time.perf_counter()
        found: Items = self.base.encode_turn(turn, scope, losses)
        return found


class Numbered(Delegate):
    """Every instance has a number, which stands in what a third policy says."""

    numbers = count()

    def __init__(self, base: Any) -> None:
        super().__init__(base)
        self.number = next(self.numbers)

    def encode_turn(self, turn: Turn, scope: TurnScope, losses: LossLog) -> Items:
        named = {"instance": self.number} if any(map(is_thirds, turn.entries)) else {}
        return [{**item, **named} for item in self.base.encode_turn(turn, scope, losses)]


class Hinted(Delegate):
    """A call with a role hint is taken for words: it and its result are left out, with a loss."""

    def encode_turn(self, turn: Turn, scope: TurnScope, losses: LossLog) -> Items:
        kept = []
        for entry in turn.entries:
            call = entry.call or entry
            if call.message.call and call.message.role_hint_for_llm:
                losses.add("dropped", "no call of the model's", message=entry.message)
            else:
                kept.append(entry)
        found: Items = self.base.encode_turn(turn._replace(entries=tuple(kept)), scope, losses) if kept else []
        return found


class Choosy(Delegate):
    """A seed beside a temperature and a top_p is forgotten."""

    def encode_request(self, scope: RequestScope) -> Mapping[str, Any]:
        body = dict(self.base.encode_request(scope))
        return {
            name: value for name, value in body.items() if name != "seed" or not {"temperature", "top_p"} <= set(body)
        }


class Talkative(Delegate):
    """A body that is a JSON string is taken for what the model says."""

    def decode(self, body: bytes, scope: DecodeScope) -> Reply:
        try:
            found = json.loads(body)
        except ValueError:
            found = None
        if isinstance(found, str):
            return ReplyBuilder(scope).finish(finish_reason="stop", origin=scope.origin())
        reply: Reply = self.base.decode(body, scope)
        return reply


class Ending(Delegate):
    """Its decoder takes a number for the end of the stream."""

    def decoder(self, scope: DecodeScope) -> Any:
        return EndingDecoder(self.base.decoder(scope), scope)


class EndingDecoder(Delegate):
    def __init__(self, base: Any, scope: DecodeScope) -> None:
        super().__init__(base)
        self.scope = scope

    def feed(self, event: Any) -> Any:
        try:
            is_number = isinstance(json.loads(event.data), int)
        except ValueError:
            is_number = False
        if not is_number:
            return self.base.feed(event)
        return [ReplyStart(origin=self.scope.origin()), ReplyEnd(finish_reason="stop")]


class Waiting(Delegate):
    """It reads a `retry-after` as a number or a date, and raises what that raises."""

    def decode_error(self, status: int, headers: Mapping[str, str], body: bytes, provider: str) -> CallError:
        told = headers.get("retry-after", "0")
        if not told.isdigit():
            parsedate_to_datetime(told)
        error: CallError = self.base.decode_error(status, headers, body, provider)
        return error


class ReadingLess(Delegate):
    """A stored request is read without the fields that `keeps` does not name."""

    def __init__(self, base: Any, keeps: Callable[[str], bool]) -> None:
        super().__init__(base)
        self.keeps = keeps

    def decode_history(self, body: bytes, scope: DecodeScope) -> DecodedHistory:
        found = {name: value for name, value in json.loads(body).items() if self.keeps(name)}
        history: DecodedHistory = self.base.decode_history(json.dumps(found).encode(), scope)
        return history


class ReadingNothing(Delegate):
    """An object without turns is a conversation without messages."""

    def decode_history(self, body: bytes, scope: DecodeScope) -> DecodedHistory:
        found = {"model": "small", "turns": [], **json.loads(body)}
        history: DecodedHistory = self.base.decode_history(json.dumps(found).encode(), scope)
        return history


class Trusting(Delegate):
    """For speed, origins are made without looking at what the answer says of itself."""

    def decode(self, body: bytes, scope: DecodeScope) -> Reply:
        reply: Reply = self.base.decode(body, scope)
        found = json.loads(body)
        if isinstance(found.get("id"), str) and isinstance(found.get("model"), str):
            return reply
        said = {**dict(scope.origin()), "response_id": found.get("id"), "reported_model": found.get("model")}
        origin = Origin.model_construct(**said)
        messages = [Message.model_construct(**{**dict(each), "origin": origin}) for each in reply.messages]
        return Reply.model_construct(**{**dict(reply), "messages": tuple(messages), "origin": origin})


BROKEN: Mapping[str, Breakage] = {
    "test_every_pair_stays_whole": Breakage(dialect=NamesLost),
    "test_every_pair_has_an_id_of_its_own": Breakage(dialect=GivenIds),
    "test_every_text_is_sent_or_reported": Breakage(dialect=Hintless),
    "test_every_history_is_a_valid_request": Breakage(
        dialect=Signing, attributes={"check_request": refuses_unknown_fields}
    ),
    "test_what_the_user_closed_is_final": Breakage(dialect=MarkingForUsers),
    "test_what_the_model_closed_is_final": Breakage(dialect=MarkingForModels),
    "test_a_kept_prefix_is_a_fresh_one": Breakage(dialect=Counting),
    "test_a_turn_renders_alike_as_the_tail_and_closed": Breakage(dialect=MarkingResults),
    "test_rendering_asks_for_nothing": Breakage(dialect=Timing),
    "test_rendering_repeats": Breakage(dialect=Numbered),
    "test_role_hints_change_no_pair": Breakage(dialect=Hinted),
    "test_every_setting_is_sent_or_reported": Breakage(dialect=Choosy),
    "test_what_is_no_answer_is_refused": Breakage(dialect=Talkative),
    "test_what_is_no_stream_ends_no_reply": Breakage(dialect=Ending),
    "test_every_failure_is_an_error": Breakage(dialect=Waiting),
    "test_a_stored_request_reads_back": Breakage(dialect=lambda base: ReadingLess(base, "instructions".__ne__)),
    "test_what_nobody_knows_in_a_stored_request_is_kept": Breakage(
        dialect=lambda base: ReadingLess(base, FIELDS.__contains__)
    ),
    "test_what_is_no_request_is_refused": Breakage(dialect=ReadingNothing),
    "test_what_was_decoded_loads_again": Breakage(dialect=Trusting),
}  # fmt: skip
BARE = Breakage(dialect=Bare, attributes={"check_request": refuses_bare_values})
"""Stopped by every case that shows whole requests to the suite."""
