"""A stranger's provider plugin, written with the published packages alone, passes the published kit.

core, kit, plugin ──uv build──▶ wheels ──▶ an environment of their own, with the vendor's SDK
the plugin's tests, copied ──▶ run there, offline                     nothing of this repository is on the path
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.project import ROOT
from tests.third_party.stranger import CORE, ECHO, KIT, Stranger

PLUGIN = Path(__file__).parent / "sabir-cohere"
FEWEST_CASES = 250
"""So many cases the kit has, and more: a suite that runs few of them proves nothing."""
WHERE = """
import json, sys, sabir, sabir_testing, sabir_cohere
print(json.dumps({"files": [m.__file__ for m in (sabir, sabir_testing, sabir_cohere)], "path": sys.path}))
"""


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stranger]:
    """Made once."""
    made = Stranger(tmp_path_factory.mktemp("stranger"))
    made.install(CORE, KIT, ECHO, PLUGIN)
    made.copy(PLUGIN)
    yield made


def test_nothing_of_the_repository_is_on_the_path(stranger: Stranger) -> None:
    """What is imported there was installed from wheels."""
    found = json.loads(stranger.ask("-c", WHERE))

    assert [each for each in (*found["files"], *found["path"]) if Path(each).is_relative_to(ROOT)] == []
    assert all(Path(each).is_relative_to(stranger.folder / "environment") for each in found["files"])


def test_the_network_cannot_be_reached_there(stranger: Stranger) -> None:
    """The guard stops what the tests must not do, by address and by name; this machine can be reached."""
    program = (
        "import offline, socket\n"
        "for host in ('192.0.2.7', 'recorded.invalid', '127.0.0.1'):\n"
        "    try:\n"
        "        socket.create_connection((host, 9), timeout=1)\n"
        "    except BaseException as error:\n"
        "        print(type(error).__name__)\n"
    )

    assert stranger.ask("-c", program).split() == ["Offline", "Offline", "ConnectionRefusedError"]


def test_its_own_tests_pass_there(stranger: Stranger) -> None:
    """The conformance kit among them: every case is run, and its summary says what the wire carries."""
    said = stranger.ask("-m", "pytest", "-p", "offline", "-p", "no:cacheprovider", "-q", "--sabir-seed=0")

    counted, last = re.search(r"TestCohere: (\d+) cases, (\d+) passed", said), said.splitlines()[-1]
    assert counted and int(counted[2]) > FEWEST_CASES, said[-3000:]
    assert re.fullmatch(r"\d+ passed(, \d+ xfailed)? in .*", last), said[-3000:]
