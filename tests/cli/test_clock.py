"""The demonstration's option tells the time for real."""

import re
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
import sabir
from sabir_cli.clock import find_zone, time_in


@pytest.mark.parametrize(
    ("city", "zone"),
    [
        ("Paris", "Europe/Paris"),
        ("new york", "America/New_York"),
        ("São Paulo", "America/Sao_Paulo"),
        ("Zürich", "Europe/Zurich"),
        ("Paris, France", "Europe/Paris"),
        ("Europe/Berlin", "Europe/Berlin"),
        ("Buenos Aires", "America/Argentina/Buenos_Aires"),
        ("UTC", "Etc/UTC"),
        ("Singapore", "Asia/Singapore"),
    ],
)
def test_a_city_is_found_as_people_and_models_write_it(city: str, zone: str) -> None:
    """Case, accents, underscores and a country after a comma do not matter."""
    assert find_zone(city) == zone


@pytest.mark.parametrize("city", ["", "Atlantis", "../../etc/passwd"])
def test_an_unknown_city_is_an_error_that_says_what_to_name(city: str) -> None:
    """The error goes to the model as a result, and a path reaches no file."""
    with pytest.raises(LookupError, match="Europe/Berlin"):
        find_zone(city)


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/Lima"])
def test_the_time_is_that_of_the_clock_in_that_zone(zone: str) -> None:
    """Read back, it is the present minute there."""
    text = time_in(zone.partition("/")[2])
    found = re.fullmatch(r"\d\d:\d\d on (\w+), \d+ \w+ \d{4}", text)
    assert found
    told = datetime.strptime(text, "%H:%M on %A, %d %B %Y").replace(tzinfo=ZoneInfo(zone))

    assert timedelta(0) <= datetime.now(ZoneInfo(zone)) - told < timedelta(minutes=2)
    assert found[1] == f"{told:%A}"


def test_it_is_an_option_with_one_simple_argument() -> None:
    """All that a small model can call reliably."""
    option = sabir.option(time_in)

    assert option.parameters["properties"] == {"city": {"type": "string"}}
    assert option.description
