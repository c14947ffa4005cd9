"""`sabir new-plugin`: what it writes is whole, is nobody else's, and stands up to the tools that its author runs."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from sabir_cli import new_plugin as writing
from sabir_cli.main import main
from sabir_cli.new_plugin import class_of, next_steps, replace_acme

from tests.architecture.project import functions, line_count
from tests.architecture.test_sizes import code_lines
from tests.cli.command import environment, error_line, run_here

ROOT = Path(__file__).parents[2]
TEMPLATES = ROOT / "plugins" / "cli" / "src" / "sabir_cli"
ADDRESS = "https://api.zenith.test:8443/v1"
LONGEST_MODULE, MOST_LINES, MOST_LOGIC = 75, 390, 225
"""Lines of code that a stranger reads: of one module, of all, and of what is left of all without imports and tables.

Of a module, up to twelve are the names that it takes from `sabir.authoring`, one a line."""
WORKED_FILES = {
    *(f"src/sabir_zenith/{name}.py" for name in ("__init__", "plugin", "provider", "dialect", "encode", "decode")),
    *(f"src/sabir_zenith/{name}.py" for name in ("stream", "history", "errors", "settings")),
    *("src/sabir_zenith/py.typed", "src/sabir_zenith/models.toml"),
    *("pyproject.toml", "README.md", ".github/workflows/tests.yml", "tests/service.py", "tests/test_zenith.py"),
}
COMPATIBLE_FILES = {
    *("src/sabir_zenith/__init__.py", "src/sabir_zenith/plugin.py", "src/sabir_zenith/py.typed"),
    *("pyproject.toml", "README.md", ".github/workflows/tests.yml", "tests/test_zenith.py"),
}


def files_of(folder: Path) -> dict[str, str]:
    """The text of every file below a folder, by its path."""
    return {
        path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in folder.rglob("*") if path.is_file()
    }


def metadata_of(folder: Path) -> dict[str, Any]:
    """What its pyproject.toml says of a package."""
    return tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))


def tool(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A tool of this environment, run where the author of the package runs it."""
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env={**environment(), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(installed(folder))},
        capture_output=True,
        text=True,
        check=False,
    )


def installed(folder: Path) -> Path:
    """What installing a package writes: its sources, and the metadata by which its entry points are found."""
    project = metadata_of(folder)["project"]
    info = folder / "src" / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    if not info.exists():
        info.mkdir()
        name, version = project["name"], project["version"]
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", "utf-8")
        points = project["entry-points"]["sabir.providers"]
        rows = "".join(f"{name} = {target}\n" for name, target in points.items())
        (info / "entry_points.txt").write_text(f"[sabir.providers]\n{rows}", "utf-8")
    return info.parent


@pytest.fixture
def worked(tmp_path: Path) -> Path:
    """The worked provider under the name of zenith."""
    assert main(["new-plugin", "zenith", "--into", str(tmp_path)]) == 0
    return tmp_path / "sabir-zenith"


@pytest.fixture
def compatible(tmp_path: Path) -> Path:
    """The provider of a compatible endpoint, under the name of zenith."""
    assert main(["new-plugin", "zenith", "--into", str(tmp_path), "--compatible", ADDRESS]) == 0
    return tmp_path / "sabir-zenith"


@pytest.fixture(params=["worked", "compatible"])
def package(request: pytest.FixtureRequest) -> Path:
    """Either."""
    folder: Path = request.getfixturevalue(request.param)
    return folder


def test_a_worked_provider_has_every_file_that_a_provider_has(worked: Path) -> None:
    found = files_of(worked)
    recorded = {path for path in found if path.startswith("tests/cassettes/")}

    assert found.keys() - recorded == WORKED_FILES
    assert {"tests/cassettes/text.yaml", "tests/cassettes/text_streamed.yaml"} <= recorded


def test_a_compatible_provider_is_one_row_of_data(compatible: Path) -> None:
    """The address is the one given, and everything else is sabir-openai's."""
    found = files_of(compatible)

    assert found.keys() == COMPATIBLE_FILES
    assert f'url="{ADDRESS}"' in found["src/sabir_zenith/plugin.py"]
    assert ADDRESS in found["README.md"]
    assert code_lines(compatible / "src" / "sabir_zenith" / "plugin.py") <= 12


def test_nothing_of_the_templates_name_is_left(package: Path) -> None:
    """A leftover would be a bug that its author did not write."""
    left = [path for path, text in files_of(package).items() if "acme" in f"{path} {text}".lower()]

    assert left == []


def test_a_worked_provider_requires_its_client_and_a_compatible_one_sabir_openai(tmp_path: Path) -> None:
    """Each requires what it imports, in a range of versions."""
    main(["new-plugin", "zenith", "--into", str(tmp_path / "a")])
    main(["new-plugin", "zenith", "--into", str(tmp_path / "b"), "--compatible", ADDRESS])
    a, b = (metadata_of(tmp_path / each / "sabir-zenith")["project"]["dependencies"] for each in "ab")

    assert [re.split(r"[>=]", each)[0] for each in a] == ["sabir", "httpx2"]
    assert [re.split(r"[>=]", each)[0] for each in b] == ["sabir", "sabir-openai"]
    assert all("<" in each for each in (*a, *b))


def test_core_finds_the_provider_and_renders_for_it(package: Path) -> None:
    program = (
        "import sabir; "
        "status = next(each for each in sabir.providers() if each.name == 'zenith'); "
        "llm = sabir.adapter('zenith:small'); rendering = llm.render('Hello'); "
        "print(status.state, status.distribution, llm.target.endpoint, rendering.losses)"
    )
    finished = tool(package, "timeit", "-n", "1", "-r", "1", program)
    is_compatible = (package / "tests" / "service.py").exists() is False
    endpoint = ADDRESS if is_compatible else "https://api.zenith.example/v1"

    assert finished.stderr == ""
    assert finished.stdout.splitlines()[0] == f"installed sabir-zenith {endpoint} ()"


def test_it_passes_its_own_linter_and_formatter_whatever_its_name(tmp_path: Path) -> None:
    """Its CI runs them; a name that makes a line longer or shorter must not break them. Each has its own settings."""
    for name in ("qq", "zenith", "a_rather_long_name"):
        for kind, more in (("worked", ()), ("compatible", ("--compatible", ADDRESS))):
            assert main(["new-plugin", name, "--into", str(tmp_path / kind), *more]) == 0
    assert len(list(tmp_path.glob("*/*/pyproject.toml"))) == 6
    folder = tmp_path / "worked" / "sabir-zenith"
    checked = tool(folder, "ruff", "check", "--no-cache", str(tmp_path))
    formatted = tool(folder, "ruff", "format", "--no-cache", "--check", str(tmp_path))

    assert (checked.stdout, checked.returncode) == ("All checks passed!\n", 0)
    assert formatted.returncode == 0, formatted.stdout


def test_their_types_are_strict(tmp_path: Path) -> None:
    """Their CI runs mypy; the templates are left out of the workspace's run, so that this is where they are checked."""
    assert main(["new-plugin", "zenith", "--into", str(tmp_path)]) == 0
    assert main(["new-plugin", "nadir", "--into", str(tmp_path), "--compatible", ADDRESS]) == 0
    folders = [tmp_path / "sabir-zenith", tmp_path / "sabir-nadir"]
    sources = [str(folder / part) for folder in folders for part in ("src", "tests")]
    checked = tool(folders[0], "mypy", "--strict", "--cache-dir", str(tmp_path / "types"), *sources)

    assert checked.returncode == 0, checked.stdout
    assert [metadata_of(folder)["tool"]["mypy"]["strict"] for folder in folders] == [True, True]


def test_the_worked_provider_can_be_read_at_once() -> None:
    """It is a stranger's first sight of a provider: what it decides stands in tables, and no module is long."""
    modules = sorted((TEMPLATES / "template" / "src" / "sabir_acme").glob("*.py"))
    bodies = [line_count(node) - docstring_lines(node) for path in modules for node in functions(path)]

    assert max(map(code_lines, modules)) <= LONGEST_MODULE
    assert sum(map(code_lines, modules)) <= MOST_LINES
    assert sum(bodies) <= MOST_LOGIC


def docstring_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many lines of a function are its docstring."""
    first = node.body[0]
    has_one = ast.get_docstring(node) is not None
    return (first.end_lineno or first.lineno) - first.lineno + 1 if has_one else 0


def test_every_module_of_it_says_what_to_change() -> None:
    modules = sorted((TEMPLATES / "template" / "src" / "sabir_acme").glob("*.py"))

    assert [path.name for path in modules if "Change: " not in path.read_text("utf-8")] == ["__init__.py"]


@pytest.mark.parametrize("more", [(), ("--compatible", ADDRESS)], ids=["worked", "compatible"])
def test_what_to_do_next_is_few_short_lines(tmp_path: Path, more: tuple[str, ...]) -> None:
    finished = run_here("new-plugin", "zenith", *more, cwd=tmp_path)
    lines = finished.stdout.decode().splitlines()
    named = [line.split()[0] for line in lines if line.split()[0].endswith(".py")]

    assert (finished.returncode, finished.stderr) == (0, b"")
    assert len(lines) <= 8
    assert max(map(len, lines)) <= 80
    assert "  cd sabir-zenith" in lines
    assert named != []
    assert all((tmp_path / "sabir-zenith" / path).is_file() for path in named)


@pytest.mark.parametrize(
    ("variables", "is_activated"),
    [
        ({}, True),
        ({"VIRTUAL_ENV": "/elsewhere"}, True),
        ({"VIRTUAL_ENV": sys.prefix}, False),
        ({"VIRTUAL_ENV": sys.prefix, "UV_RUN_RECURSION_DEPTH": "1"}, True),
    ],
    ids=["by its path", "another", "activated", "uv run"],
)
def test_what_to_do_next_is_typed_in_the_environment_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: Mapping[str, str], is_activated: bool
) -> None:
    """It is activated first where the user's shell has not done so; its own installer brings what is missing."""
    for name in ("VIRTUAL_ENV", "UV_RUN_RECURSION_DEPTH"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    near = next_steps(Path(sys.prefix).parent / "sabir-zenith", "zenith", "template").splitlines()
    found = {"pip": object(), "sabir_testing": None}
    monkeypatch.setattr(writing, "find_spec", found.get)
    bare = next_steps(tmp_path, "zenith", "template")

    assert (f"  . ../{Path(sys.prefix).name}/bin/activate" in near) is is_activated
    assert "  python -m pip install -e . sabir-testing  installs it" in bare
    assert "sabir, and the tests' sabir-testing, which has pytest" in bare


def test_json_says_what_was_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new-plugin", "zenith", "--into", str(tmp_path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    folder = Path(document["folder"])

    assert document["name"] == "zenith"
    assert folder == tmp_path / "sabir-zenith"
    assert document["files"] == sorted(files_of(folder))


ADDRESSES = ("ftp://host/v1", "zenith", "https://user:word@host/v1", "https://host/v1?key=1", 'https://host/"v1"')
UNFIT = "cannot be a provider's name; use lower-case letters, digits and _; "


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["Zenith"], f"'Zenith' {UNFIT}try 'zenith'"),
        (["my-vendor"], f"'my-vendor' {UNFIT}try 'my_vendor'"),
        (["../zenith"], f"'../zenith' {UNFIT}try 'zenith'"),
        (["4all"], f"'4all' {UNFIT}choose another"),
        (["class"], f"'class' {UNFIT}choose another"),
        (["echo"], "a provider 'echo' is installed already (see `sabir providers`); choose another name"),
        (["cli"], "a package sabir_cli is installed already; choose another name than 'cli'"),
        (
            ["provider"],
            "the name 'provider' needs a class Provider, which the package uses already; choose another name",
        ),
        *((["zenith", "--compatible", address], "") for address in ADDRESSES),
    ],
)
def test_what_no_package_can_hold_is_refused_in_one_line(tmp_path: Path, arguments: list[str], said: str) -> None:
    """No address but http(s), and nothing in it that may be secret: the row is published."""
    finished = run_here("new-plugin", *arguments, cwd=tmp_path)

    assert (finished.returncode, finished.stdout) == (2, b"")
    assert said in (error_line(finished), "")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    """Whatever is in it was somebody's work."""
    (tmp_path / "sabir-zenith").mkdir()
    finished = run_here("new-plugin", "zenith", cwd=tmp_path)

    assert finished.returncode == 2
    assert error_line(finished) == "'sabir-zenith' exists already; remove it, or choose another folder with --into"
    assert list((tmp_path / "sabir-zenith").iterdir()) == []


def test_a_name_of_several_words_has_one_form_for_each_place() -> None:
    """Python names join with _, distributions and hosts with -, classes with capitals."""
    text = "sabir-acme sabir_acme https://api.acme.example/v1 Acme ACME_API_KEY acme.chat"
    expected = "sabir-my-host sabir_my_host https://api.my-host.example/v1 MyHost MY_HOST_API_KEY my_host.chat"

    assert replace_acme(text, "my_host") == expected
    assert replace_acme("at https://api.acme.example/v1/", "acmetal", "http://acme.test") == "at http://acme.test/"
    assert class_of("my_host") == "MyHost"
