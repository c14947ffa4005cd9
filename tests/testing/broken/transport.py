"""What fails the cases of the family `transport`, one at a time.

BROKEN["test_…[row]"] ──▶ Breakage(connection=…) around acme's connection, or Breakage(provider=…) around acme
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import httpx2
from sabir_testing.families.access import ENDPOINTS, INVALID_KEYS, INVALID_URLS, URLS_WITH_SECRETS

from tests.testing.broken import connections as lines
from tests.testing.broken import providers
from tests.testing.broken.providers import reaching, telling
from tests.testing.harness import Breakage

WAYS = ("waiting", "async")
Rows = dict[str, Breakage]


def either_way(case: str, made: Callable[..., Any], row: str = "") -> Rows:
    """A breakage of each way, under the case's name with its row."""
    return {f"{case}[{row}{way}]": Breakage(connection=partial(made, way=way)) for way in WAYS}


def line(case: str, row: str = "", **hooks: Any) -> Rows:
    """Something else is sent, told or raised."""
    return either_way(case, partial(lines.Line, **hooks), row)


def answer(case: str, kind: Callable[[Any], Any], row: str = "") -> Rows:
    """The answer is of another class."""
    return line(case, row, told=lambda answer, connection: kind(answer))


def failing(row: str, **hooks: Any) -> Rows:
    """What comes of a body's end, or reading it raises, is no error of the library's."""
    return answer("test_a_failed_call_ends_in_the_librarys_error", partial(lines.Answer, **hooks), row)


UNFIT = "test_a_header_that_is_no_http_is_refused_unseen"
TIMED_OUT = "test_an_answer_that_does_not_come_times_out"
BROKEN: Mapping[str, Breakage] = {
    **{
        f"test_an_endpoint_that_is_no_url_is_refused[{row}]": reaching(providers.passes(url))
        for row, url in INVALID_URLS.items()
    },
    **{f"test_a_refused_endpoint_shows_no_secret[{row}]": telling(url) for row, url in URLS_WITH_SECRETS.items()},
    **{f"test_an_endpoint_shows_no_secret[{row}]": telling(url) for row, url in ENDPOINTS.items()},
    **{
        f"test_an_empty_setting_is_refused[{setting}]": reaching(providers.ignores_empty(setting))
        for setting in ("api_key", "base_url")
    },
    "test_no_variable_is_read_before_the_first_send": reaching(providers.reads_at_once),
    "test_key_variables_are_read_in_their_order": Breakage(provider=providers.Disordered),
    "test_a_given_key_comes_before_the_variables": reaching(providers.prefers_variables),
    "test_a_callable_key_is_asked_at_each_send": reaching(providers.asks_at_once),
    "test_a_vault_without_a_key_is_a_missing_key": reaching(providers.replaces_the_vaults),
    "test_a_missing_key_names_what_to_set": Breakage(
        connection=partial(lines.Line, way="waiting", raised=lines.misnames_the_key)
    ),
    **{
        f"test_a_key_that_no_header_can_hold_is_refused_unseen[{row}]": reaching(providers.tidies(key, "key-tidied"))
        for row, key in INVALID_KEYS.items()
    },
    "test_closing_a_connection_closes_its_clients[waiting]": Breakage(connection=lines.LeavesTheWaitingClient),
    "test_closing_a_connection_closes_its_clients[async]": Breakage(connection=lines.LeavesTheLoopsClient),
    "test_closing_a_connection_closes_its_clients[waiting_client_by_aclose]": Breakage(connection=lines.LeavesTheOther),
    **either_way("test_closing_a_connection_twice_is_harmless", lines.ClosesOnce),
    "test_the_users_own_client_is_used_and_left_open": Breakage(
        connection=lines.ClosesTheUsers, attributes={"client": lambda suite, base_url: httpx2.Client(base_url=base_url)}
    ),
    "test_what_is_no_client_is_refused": reaching(providers.ignores_objects),
    **line("test_the_rendered_bytes_reach_the_path_below_the_endpoint", sent=lines.rewritten),
    **line("test_the_body_is_said_to_be_json", sent=lines.said_to_be_text),
    **line("test_the_key_goes_in_a_header", sent=lines.without_the_given_key),
    **line("test_further_headers_go_with_the_request", sent=lines.first_of_a_list),
    **line("test_an_answers_header_names_are_in_lower_case", told=lines.titled),
    **either_way("test_an_answers_head_comes_before_its_body", lines.Peeking),
    **answer("test_chunks_come_as_they_are_sent", lines.OneBehind),
    **answer("test_closing_an_answer_early_hangs_up", lines.Unclosed),
    **answer("test_closing_an_answer_twice_is_harmless", partial(lines.Unclosed, times=1)),
    "test_cancelling_a_call_hangs_up[before_the_head]": Breakage(connection=lines.Shielded),
    "test_cancelling_a_call_hangs_up[in_the_body]": Breakage(
        connection=partial(lines.Line, way="async", told=lambda answer, connection: lines.Uncancelled(answer))
    ),
    "test_a_waiting_call_lets_other_tasks_run[before_the_head]": Breakage(
        connection=partial(lines.Blocking, moment="http11.send_request_body.complete")
    ),
    "test_a_waiting_call_lets_other_tasks_run[in_the_body]": Breakage(
        connection=partial(lines.Blocking, moment="http11.receive_response_headers.complete")
    ),
    **{
        case: breakage
        for status in (409, 429, 500, 503)
        for case, breakage in either_way(
            "test_a_refusal_is_an_answer_and_sent_once", partial(lines.RepeatsAtOnce, status=status), f"{status}-"
        ).items()
    },
    **line("test_a_redirect_is_not_followed", "302-", told=lines.following(302)),
    **line("test_a_redirect_is_not_followed", "307-", told=lines.following(307)),
    **answer("test_a_compressed_body_is_decompressed", lines.Raw),
    **line("test_a_failed_call_ends_in_the_librarys_error", "refused-", raised=lines.leaking(httpx2.ConnectError)),
    **failing("broken_off-", raised=lines.is_end),
    **failing("cut-", at_end=lines.wants_whole_json),
    **failing("no_gzip-", raised=lines.is_decoding),
    **failing("html-", at_end=lines.wants_json),
    **failing("empty-", at_end=lines.wants_a_body),
    **line(TIMED_OUT, raised=lines.leaking(httpx2.ReadTimeout)),
    **line("test_a_request_without_a_timeout_waits", sent=lines.impatient),
    **answer("test_a_stream_that_breaks_off_is_a_broken_stream", partial(lines.Answer, raised=lines.is_end_of_stream)),
    **line(UNFIT, "line_break-", raised=lines.leaking(httpx2.LocalProtocolError)),
    **line(UNFIT, "foreign_letter-", raised=lines.leaking(UnicodeEncodeError)),
    **line("test_no_failure_shows_the_key", raised=lines.shows_the_key),
    "test_one_connection_serves_many_threads": Breakage(connection=lines.ONE_THREAD),
    "test_one_connection_serves_several_event_loops": Breakage(connection=lines.ONE_LOOP),
}
"""Case → how acme is broken so that it fails this case alone."""
FAULTS: Mapping[tuple[str, str], Breakage] = {
    ("test_a_waiting_call_lets_other_tasks_run", "open() sends by the sync client"): Breakage(
        connection=lines.Disguised
    ),
}
"""(Case, the fault) → an adapter that the case stops, and others as well."""
