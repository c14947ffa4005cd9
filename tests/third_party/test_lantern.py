"""A stranger's provider with signed requests and a framing of its own passes the kit.

core, kit, plugin ──uv build──▶ wheels ──▶ an environment of their own
the plugin's tests, copied ──▶ run there, offline, against recordings and a stand-in on this machine
"""

import re
from pathlib import Path

import pytest

from tests.third_party.stranger import CORE, ECHO, KIT, Stranger
from tests.third_party.test_new_plugin import FEWEST_CASES, counted

PLUGIN = Path(__file__).parent / "sabir-lantern"
RUN = ("-m", "pytest", "-q", "-p", "offline", "-p", "no:cacheprovider", "--sabir-seed=0")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Stranger:
    """Return an environment with the package, and a copy of its tests."""
    environment = Stranger(tmp_path_factory.mktemp("lantern"))
    environment.install(CORE, KIT, ECHO, PLUGIN)
    environment.copy(PLUGIN)
    return environment


def test_lantern_passes_its_own_tests_and_the_kit(stranger: Stranger) -> None:
    output = stranger.ask(*RUN)

    cases, outcome = counted(output, "TestLantern")
    assert cases > FEWEST_CASES
    assert outcome == f"{cases} passed"
    assert re.fullmatch(r"\d+ passed in .*", output.splitlines()[-1]), output[-3000:]
