"""What fails the cases of the family `transport`, one at a time.

BROKEN["test_…[row]"] ──▶ Breakage(connection=…) around acme's connection, or Breakage(provider=…) around acme
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import httpx2
from sabir_testing.families.access import ENDPOINTS, KEYS, NO_URLS, SECRETIVE_URLS

from tests.testing.broken.answers import (
    ClosedOnce,
    LeaksDecoding,
    LeaksTheEnd,
    LeaksTheStreamsEnd,
    OneBehind,
    Raw,
    Uncancelled,
    Unclosed,
    WantsABody,
    WantsJSON,
    WantsWholeJSON,
)
from tests.testing.broken.connections import (
    ClosesOnce,
    ClosesTheUsers,
    FirstOfAList,
    Follows,
    Leaks,
    LeavesTheLoopsClient,
    LeavesTheOther,
    LeavesTheWaitingClient,
    MisnamesTheKey,
    OfOneLoop,
    OfOneThread,
    Peeking,
    RepeatsAtOnce,
    Rewritten,
    SaidToBeText,
    Shielded,
    ShowsTheKey,
    Titled,
    Told,
    WithoutTheGivenKey,
)
from tests.testing.broken.providers import (
    Disordered,
    asks_at_once,
    ignores_empty,
    ignores_objects,
    passes,
    prefers_variables,
    reaching,
    reads_at_once,
    replaces_the_vaults,
    telling,
    tidies,
)
from tests.testing.harness import Breakage

WAYS = ("waiting", "async")


def _either_way(case: str, made: Callable[[Any, str], Any], row: str = "") -> dict[str, Breakage]:
    """A breakage of each way, under the case's name with its row."""
    return {f"{case}[{row}{way}]": Breakage(connection=partial(_made, made, way)) for way in WAYS}


def _made(made: Callable[[Any, str], Any], way: str, base: Any) -> Any:
    return made(base, way)


FAILED = "test_a_failed_call_ends_in_the_librarys_error"
UNFIT = "test_a_header_that_is_no_http_is_refused_unseen"

BROKEN: Mapping[str, Breakage] = {
    **{f"test_an_endpoint_that_is_no_url_is_refused[{row}]": reaching(passes(url)) for row, url in NO_URLS.items()},
    **{f"test_a_refused_endpoint_shows_no_secret[{row}]": telling(url) for row, url in SECRETIVE_URLS.items()},
    **{f"test_an_endpoint_shows_no_secret[{row}]": telling(url) for row, url in ENDPOINTS.items()},
    **{
        f"test_an_empty_setting_is_refused[{setting}]": reaching(ignores_empty(setting))
        for setting in ("api_key", "base_url")
    },
    "test_no_variable_is_read_before_the_first_send": reaching(reads_at_once),
    "test_key_variables_are_read_in_their_order": Breakage(provider=Disordered),
    "test_a_given_key_comes_before_the_variables": reaching(prefers_variables),
    "test_a_callable_key_is_asked_at_each_send": reaching(asks_at_once),
    "test_a_vault_without_a_key_is_a_missing_key": reaching(replaces_the_vaults),
    "test_a_missing_key_names_what_to_set": Breakage(connection=lambda base: MisnamesTheKey(base, "waiting")),
    **{
        f"test_a_key_that_no_header_can_hold_is_refused_unseen[{row}]": reaching(tidies(key, "key-tidied"))
        for row, key in KEYS.items()
    },
    "test_closing_a_connection_closes_its_clients[waiting]": Breakage(connection=LeavesTheWaitingClient),
    "test_closing_a_connection_closes_its_clients[async]": Breakage(connection=LeavesTheLoopsClient),
    "test_closing_a_connection_closes_its_clients[waiting_client_by_aclose]": Breakage(connection=LeavesTheOther),
    **_either_way("test_closing_a_connection_twice_is_harmless", ClosesOnce),
    "test_the_users_own_client_is_used_and_left_open": Breakage(
        connection=ClosesTheUsers, attributes={"client": lambda suite, base_url: httpx2.Client(base_url=base_url)}
    ),
    "test_what_is_no_client_is_refused": reaching(ignores_objects),
    **_either_way("test_the_rendered_bytes_reach_the_path_below_the_endpoint", Rewritten),
    **_either_way("test_the_body_is_said_to_be_json", SaidToBeText),
    **_either_way("test_the_key_goes_in_a_header", WithoutTheGivenKey),
    **_either_way("test_further_headers_go_with_the_request", FirstOfAList),
    **_either_way("test_an_answers_header_names_are_in_lower_case", Titled),
    **_either_way("test_an_answers_head_comes_before_its_body", Peeking),
    **_either_way("test_chunks_come_as_they_are_sent", partial(Told, kind=OneBehind)),
    **_either_way("test_closing_an_answer_early_hangs_up", partial(Told, kind=Unclosed)),
    **_either_way("test_closing_an_answer_twice_is_harmless", partial(Told, kind=ClosedOnce)),
    "test_cancelling_a_call_hangs_up[before_the_head]": Breakage(connection=Shielded),
    "test_cancelling_a_call_hangs_up[in_the_body]": Breakage(connection=lambda base: Told(base, "async", Uncancelled)),
    **{
        name: breakage
        for status in (409, 429, 500, 503)
        for name, breakage in _either_way(
            "test_a_refusal_is_an_answer_and_sent_once", partial(RepeatsAtOnce, status=status), f"{status}-"
        ).items()
    },
    **{
        name: breakage
        for status in (302, 307)
        for name, breakage in _either_way(
            "test_a_redirect_is_not_followed", partial(Follows, status=status), f"{status}-"
        ).items()
    },
    **_either_way("test_a_compressed_body_is_decompressed", partial(Told, kind=Raw)),
    **_either_way(FAILED, partial(Leaks, kind=httpx2.ConnectError), "refused-"),
    **_either_way(FAILED, partial(Told, kind=LeaksTheEnd), "broken_off-"),
    **_either_way(FAILED, partial(Told, kind=WantsWholeJSON), "cut-"),
    **_either_way(FAILED, partial(Told, kind=LeaksDecoding), "no_gzip-"),
    **_either_way(FAILED, partial(Told, kind=WantsJSON), "html-"),
    **_either_way(FAILED, partial(Told, kind=WantsABody), "empty-"),
    **_either_way("test_an_answer_that_does_not_come_times_out", partial(Leaks, kind=httpx2.ReadTimeout)),
    **_either_way("test_a_stream_that_breaks_off_is_a_broken_stream", partial(Told, kind=LeaksTheStreamsEnd)),
    **_either_way(UNFIT, partial(Leaks, kind=httpx2.LocalProtocolError), "line_break-"),
    **_either_way(UNFIT, partial(Leaks, kind=UnicodeEncodeError), "foreign_letter-"),
    **_either_way("test_no_failure_shows_the_key", ShowsTheKey),
    "test_one_connection_serves_many_threads": Breakage(connection=OfOneThread),
    "test_one_connection_serves_several_event_loops": Breakage(connection=OfOneLoop),
}
"""Case → how acme is broken so that it fails this case alone."""
