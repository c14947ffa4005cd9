"""Dialects that break a law, one each, where no question of the other families has it.

what they do wrong shows in some random histories only: odd names, a third policy, ids used again, turns by the dozen
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from email.utils import parsedate_to_datetime
from functools import partial
from itertools import count
from typing import Any

from sabir.contract.dialect import DecodedHistory, Dialect
from sabir.contract.scope import DecodeScope, Insertion, RequestScope
from sabir.contract.turns import Entry, LossLog, Turn, TurnScope
from sabir.errors import CallError
from sabir.reading.fold import ReplyBuilder
from sabir.vocabulary.messages import Message, Origin
from sabir.vocabulary.reply import Reply, ReplyEnd, ReplyStart
from sabir_testing.kit.suite import Suite

from tests.testing.harness import Breakage, Delegate, changed

MANY_TURNS = 5
"""More than any recorded question has."""
FIELDS = (
    "model", "instructions", "turns", "tools", "choice", "shape", "limit", "temperature", "top_p", "stops", "seed",
    "effort", "parallel", "tier", "stream",
)  # fmt: skip


# --- turns ------------------------------------------------------------------------------------------------------------


def sifted(is_kept: Callable[[Entry, LossLog], bool]) -> Breakage:
    """Acme that leaves out what is not to be kept of a turn."""

    def encode_turn(own: Any, turn: Turn, scope: TurnScope, losses: LossLog) -> Any:
        kept = tuple(entry for entry in turn.entries if is_kept(entry, losses))
        return own(turn._replace(entries=kept), scope, losses) if kept else []

    return changed(encode_turn=encode_turn)


def unless_renamed(entry: Entry, losses: LossLog) -> bool:
    """Results of options that had to be renamed are left out; a loss says so, but their calls stay."""
    is_renamed = entry.message.result and entry.call and entry.call.message.call.option_name != entry.wire_name
    if is_renamed:
        losses.add("dropped", "no option of that name", message=entry.message)
    return not is_renamed


def unless_hinted_words(entry: Entry, losses: LossLog) -> bool:
    """Words under a role hint are left out, silently."""
    return bool(entry.wire_id) or not entry.message.role_hint_for_llm


def unless_hinted_call(entry: Entry, losses: LossLog) -> bool:
    """A call with a role hint is taken for words: it and its result are left out, with a loss."""
    call = (entry.call or entry).message
    is_hinted = call.call and call.role_hint_for_llm
    if is_hinted:
        losses.add("dropped", "no call of the model's", message=entry.message)
    return not is_hinted


def marked(own: Any, turn: Turn, scope: TurnScope, losses: LossLog, mark: Mapping[str, Any]) -> Any:
    """Items in which neither the user nor the model speaks, but another policy, have one more field."""
    is_thirds = any(entry.message.policy == "planner" for entry in turn.entries)
    return [{**item, **(mark if is_thirds else {})} for item in own(turn, scope, losses)]


NUMBERS = count()


def numbered(base: Dialect) -> Dialect:
    """Every instance has a number, which stands in what a third policy says."""
    return replace(base, encode_turn=partial(marked, base.encode_turn, mark={"instance": next(NUMBERS)}))


def given_ids(own: Any, turn: Turn, scope: TurnScope, losses: LossLog) -> Any:
    """Calls and results are sent with the ids that the history gives them."""
    chosen = [(entry, entry.message.call or entry.message.result) for entry in turn.entries]
    entries = tuple(entry._replace(wire_id=each.invocation_id) if each else entry for entry, each in chosen)
    return own(turn._replace(entries=entries), scope, losses)


def timed(own: Any, turn: Turn, scope: TurnScope, losses: LossLog) -> Any:
    """A turn's encoding is timed."""
    time.perf_counter()
    return own(turn, scope, losses)


def bare(own: Any, turn: Turn, scope: TurnScope, losses: LossLog) -> Any:
    """A result that is no text goes out as the value that it is, where the wire wants a text."""
    found = own(turn, scope, losses)
    for entry, sent in zip(turn.entries, found[0]["parts"] if turn.side == "results" else (), strict=False):
        if not (entry.pieces or entry.message.result.is_error):
            sent["parts"][0]["text"] = entry.message.result.result
    return found


class Counting(Delegate):
    """Turns are numbered as they are encoded, not as they stand; a long conversation shows it."""

    number = 0

    def encode_turn(self, turn: Turn, scope: TurnScope, losses: LossLog) -> Any:
        self.number += 1
        named = {"number": self.number} if self.number > MANY_TURNS else {}
        return [{**item, **named} for item in self.base.encode_turn(turn, scope, losses)]

    def encode_request(self, scope: RequestScope) -> Any:
        self.number = 0
        return self.base.encode_request(scope)


def refuses_unknown_fields(suite: Suite, body: bytes) -> None:
    """What a vendor's own types would say of an item."""
    for item in json.loads(body)["turns"]:
        assert set(item) == {"by", "parts"}, f"extra fields in {sorted(item)}"


def refuses_bare_values(suite: Suite, body: bytes) -> None:
    """What a vendor's own types would say of a result."""
    for sent in [part for item in json.loads(body)["turns"] for part in item["parts"] if part["type"] == "result"]:
        for part in sent["parts"]:
            assert isinstance(part.get("text", ""), str), f"a text of type {type(part['text']).__name__}"


# --- heads ------------------------------------------------------------------------------------------------------------


def marking(side: str, insertion: Insertion) -> Breakage:
    """A place is marked, unasked, where this side speaks last and no limit is set."""

    def encode_request(own: Any, scope: RequestScope) -> Any:
        if scope.last_side == side and scope.settings.take("max_output_tokens") is None:
            scope.insertions.append(insertion)
        return own(scope)

    return changed(encode_request=encode_request)


CLOSED = Insertion("closed", b"}", b',"cached":true', "")
END = Insertion("end", b"}", b',"last":true', "")
"""The end of what is closed, and the last item, which the next request has bare."""


def choosy(own: Any, scope: RequestScope) -> Any:
    """A seed beside a temperature and a top_p is forgotten."""
    body = dict(own(scope))
    forgotten = {"seed"} if {"temperature", "top_p"} <= set(body) else set()
    return {name: value for name, value in body.items() if name not in forgotten}


# --- what is read -----------------------------------------------------------------------------------------------------


def _read(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def talkative(own: Any, body: bytes, scope: DecodeScope) -> Any:
    """A body that is a JSON string is taken for what the model says."""
    is_text = isinstance(_read(body), str)
    return ReplyBuilder(scope).finish(finish_reason="stop", origin=scope.origin()) if is_text else own(body, scope)


def trusting(own: Any, body: bytes, scope: DecodeScope) -> Any:
    """For speed, origins are made without looking at what the answer says of itself."""
    reply, found = own(body, scope), json.loads(body)
    if isinstance(found.get("id"), str) and isinstance(found.get("model"), str):
        return reply
    said = {**dict(scope.origin()), "response_id": found.get("id"), "reported_model": found.get("model")}
    origin = Origin.model_construct(**said)
    messages = [Message.model_construct(**{**dict(each), "origin": origin}) for each in reply.messages]
    return Reply.model_construct(**{**dict(reply), "messages": tuple(messages), "origin": origin})


class EndingDecoder(Delegate):
    """It takes a number for the end of the stream."""

    def __init__(self, own: Any, scope: DecodeScope) -> None:
        super().__init__(own(scope))
        self.scope = scope

    def feed(self, event: Any) -> Any:
        if not isinstance(_read(event.data), int):
            return self.base.feed(event)
        return [ReplyStart(origin=self.scope.origin()), ReplyEnd(finish_reason="stop")]


def waiting(own: Any, status: int, headers: Mapping[str, str], body: bytes, provider: str) -> CallError:
    """It reads a `retry-after` as a number or a date, and raises what that raises."""
    told = headers.get("retry-after", "0")
    if not told.isdigit():
        parsedate_to_datetime(told)
    return own(status, headers, body, provider)


def reading(change: Callable[[dict[str, Any]], Mapping[str, Any]]) -> Breakage:
    """A stored request is read as if it said something else."""

    def decode_history(own: Any, body: bytes, scope: DecodeScope) -> DecodedHistory:
        return own(json.dumps(change(json.loads(body))).encode(), scope)

    return changed(decode_history=decode_history)


def without(is_left_out: Callable[[str], bool]) -> Breakage:
    """A stored request is read without some of its fields."""
    return reading(lambda found: {name: value for name, value in found.items() if not is_left_out(name)})


def hasty(own: Any, body: bytes, scope: DecodeScope) -> Reply:
    """Every call of a reply may run, however the reply ended."""
    reply: Reply = own(body, scope)
    fields = {"invalid_arguments": False, "cut_off": False}
    calls = {each.id: each.call.model_copy(update=fields) for each in reply.option_calls if each.call.cut_off}
    messages = (each.model_copy(update={"payload": calls.get(each.id, each.payload)}) for each in reply.messages)
    return reply.model_copy(update={"messages": tuple(messages)})


BROKEN: Mapping[str, Breakage] = {
    "test_every_pair_stays_whole": sifted(unless_renamed),
    "test_every_pair_has_an_id_of_its_own": changed(encode_turn=given_ids),
    "test_every_text_is_sent_or_reported": sifted(unless_hinted_words),
    "test_every_history_is_a_valid_request": replace(
        changed(encode_turn=partial(marked, mark={"who": "planner"})),
        attributes={"check_request": refuses_unknown_fields},
    ),
    "test_what_the_user_closed_is_final": marking("user", CLOSED),
    "test_what_the_model_closed_is_final": marking("assistant", CLOSED),
    "test_a_kept_prefix_is_a_fresh_one": Breakage(dialect=Counting),
    "test_a_turn_renders_alike_as_the_tail_and_closed": marking("results", END),
    "test_rendering_asks_for_nothing": changed(encode_turn=timed),
    "test_rendering_repeats": Breakage(dialect=numbered),
    "test_role_hints_change_no_pair": sifted(unless_hinted_call),
    "test_every_setting_is_sent_or_reported": changed(encode_request=choosy),
    "test_what_is_no_answer_is_refused": changed(decode=talkative),
    "test_what_is_no_stream_ends_no_reply": changed(decoder=EndingDecoder),
    "test_a_call_that_was_cut_off_never_runs": changed(decode=hasty),
    "test_every_failure_is_an_error": changed(decode_error=waiting),
    "test_a_stored_request_reads_back": without("instructions".__eq__),
    "test_what_nobody_knows_in_a_stored_request_is_kept": without(lambda name: name not in FIELDS),
    "test_what_is_no_request_is_refused": reading(lambda found: {"model": "small", "turns": [], **found}),
    "test_what_was_decoded_loads_again": changed(decode=trusting),
}
"""Case → acme, broken so that it fails this case alone."""
BARE = replace(changed(encode_turn=bare), attributes={"check_request": refuses_bare_values})
"""Stopped by every case that shows whole requests to the suite."""
