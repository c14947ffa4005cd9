"""One neutral set of settings, strict; a vendor's own under the provider's name."""

from http import HTTPStatus
from typing import Any

import pytest
from pydantic import BaseModel
from sabir.contract.provider import WireRequest
from sabir.errors import AuthenticationFailed, RateLimited, SettingsInvalid
from sabir.vocabulary.settings import (
    WIRE_SETTINGS,
    ResponseFormat,
    RetryPolicy,
    Settings,
    SettingsArguments,
    SettingsReader,
)


class Invoice(BaseModel):
    """What is owed."""

    total: float


EVERY_SETTING: dict[str, Any] = {
    "max_output_tokens": 10, "temperature": 0.0, "top_p": 1.0, "stop": ["a"], "seed": 0, "reasoning_effort": "low",
    "option_choice": "auto", "parallel_options": False, "response_format": {"type": "object", "title": "Invoice"},
    "timeout": 1.5, "retries": 0, "media_labels": True, "unsupported_media": "drop",
    "vendor": {"acme": {"tier": "fast"}}, "extra_body": {"x": [1]}, "extra_headers": {"x-trace": "1"},
}  # fmt: skip


def test_a_checker_is_told_of_every_field() -> None:
    assert [*SettingsArguments.__annotations__] == [
        field.alias or name for name, field in Settings.model_fields.items()
    ]


def test_settings_are_data_and_nothing_is_set_unless_it_is_given() -> None:
    """A setting that is not set is the vendor's default, not ours."""
    settings, none = Settings(**EVERY_SETTING), Settings()

    assert Settings.model_validate_json(settings.model_dump_json()) == settings
    assert (settings.vendor, settings.stop) == ({"acme": {"tier": "fast"}}, ("a",))
    assert settings.retries == RetryPolicy(attempts=1)
    assert Settings(retries=HTTPStatus.CONTINUE).retries == RetryPolicy(attempts=101)  # a number is any int
    assert all(getattr(none, name) is None for name in WIRE_SETTINGS)
    assert (none.vendor, none.extra_body, none.extra_headers) == ({}, {}, {})


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": -1}, {"temperature": float("nan")}, {"top_p": 1.5}, {"timeout": 0},
        {"timeout": float("inf")}, {"retries": -1}, {"retries": True}, {"reasoning_effort": "hard"},
        {"option_choice": ""}, {"unsupported_media": "refuse"}, {"vendor": {"acme": 3}}, {"vendor": 3},
        {"extra_headers": {"x": 1}}, {"extra_body": {"x": float("nan")}},
    ],
    ids=str,
)  # fmt: skip
def test_impossible_settings_are_errors(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsInvalid):
        Settings(**wrong)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"max_tokens": 3}, "Settings has no `max_tokens`; pass settings=sabir.Settings(max_output_tokens=…)"),
        ({"temprature": 1}, "Settings has no `temprature`; did you mean `temperature`?"),
        ({"zzz": 1}, "Settings has no `zzz`; its fields are max_output_tokens, temperature, "),
        ({"max_output_tokens": 0}, "Settings: max_output_tokens: Input should be greater than 0"),
        ({"stop": ["\ud800"]}, "Settings: stop.0: contains a lone surrogate"),
        ({"option_choice": "\ud800"}, "Settings: option_choice: contains a lone surrogate"),
    ],
)
def test_a_wrong_setting_is_one_line(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingsInvalid) as caught:
        Settings(**wrong)

    assert str(caught.value).startswith(says)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_stops_headers_and_what_is_sent_verbatim_are_held_as_they_must_be() -> None:
    given = {"z": {"y": 1, "x": 2}, "a": {}}
    settings = Settings(extra_body=given, vendor=given, extra_headers={"x-key": "hidden"}, stop="ab")

    assert settings.stop == ("ab",)
    assert Settings(stop=[]).stop is Settings(stop=[]).laid_over(Settings(stop="END")).stop is None
    assert "hidden" not in f"{settings!r} {WireRequest('/', b'', {'x-key': 'hidden'})!r}"
    for held in (settings.extra_body, settings.vendor):
        assert [list(held), list(held["z"])] == [["z", "a"], ["y", "x"]]


def test_the_schema_of_a_response_format_is_made_once() -> None:
    """A program asks for the same class at each call; to make its schema costs more than to render the call."""
    made = []

    class Verdict(BaseModel):
        response: str

        @classmethod
        def model_json_schema(cls, *given: Any, **how: Any) -> dict[str, Any]:
            made.append(cls)
            return super().model_json_schema(*given, **how)

    first, second = (Settings(response_format=Verdict).response_format for _ in range(2))
    assert first is second and made == [Verdict]


def test_a_response_format_is_a_model_or_a_schema() -> None:
    from_model = Settings(response_format=Invoice).response_format
    from_schema = Settings(response_format={"type": "object"}).response_format
    named = Settings(response_format={"name": "bill", "schema": {"b": 1, "a": 2}}).response_format

    assert from_model is not None
    assert (from_model.name, from_model.description) == ("Invoice", "What is owed.")
    assert from_model.schema_view == Invoice.model_json_schema()
    assert from_schema == ResponseFormat(name="output", schema={"type": "object"})
    assert named is not None
    assert list(named.schema_view) == ["b", "a"]


def test_a_calls_settings_are_laid_over_the_adapters() -> None:
    defaults = Settings(temperature=0.5, seed=1, vendor={"acme": {"a": 1}})
    laid = Settings(temperature=None, seed=2).laid_over(defaults)
    copied = Settings(temperature=0.5).model_copy(update={"seed": 1})

    assert (laid.temperature, laid.seed, laid.vendor) == (None, 2, {"acme": {"a": 1}})
    assert Settings().laid_over(defaults) is defaults
    assert defaults.laid_over(Settings()) is defaults
    assert Settings(**EVERY_SETTING).laid_over(Settings(**EVERY_SETTING)) == Settings(**EVERY_SETTING)
    assert copied.model_fields_set == {"temperature", "seed"}
    assert copied.laid_over(Settings(top_p=0.3)) == Settings(temperature=0.5, seed=1, top_p=0.3)


def test_a_reader_knows_what_was_looked_at() -> None:
    reader = SettingsReader(Settings(temperature=0.5, seed=1))
    assert reader.take("temperature") == 0.5
    assert reader.take("top_p") is None

    assert reader.untouched() == ("seed",)
    assert set(reader.unread()) == set(WIRE_SETTINGS) - {"temperature", "top_p"}
    with pytest.raises(
        SettingsInvalid, match="'timeout' is not a setting of a request; the settings are max_output_tokens"
    ):
        reader.take("timeout")


def test_a_policy_says_how_long_to_wait() -> None:
    policy = RetryPolicy(attempts=6, first_delay=1, longest_delay=5, longest_retry_after=60)
    error = RateLimited("slow down")

    assert [policy.delay(attempt, error) for attempt in range(1, 7)] == [1, 2, 4, 5, 5, None]
    assert policy.delay(1, error, jitter=0.5) == 0.5
    assert RetryPolicy(attempts=100_000).delay(99_999, error) == 8.0
    waits = [policy.delay(1, RateLimited("x", retry_after=seconds), jitter=0.5) for seconds in (42.5, 0, 61)]
    assert waits == [42.5, 0, None]
    assert RetryPolicy().delay(1, AuthenticationFailed("x", retry_after=1)) is None
