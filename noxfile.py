"""Every chore by its name: `uv run nox -l` lists them, `uv run nox -s lint types` runs two.

Each session makes an environment of its own. Most sync it from pyproject.toml; `isolated` and `build` see
nothing but built archives, as users do.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import nox

ROOT = Path(__file__).parent
OLDEST = (3, 11)
PYTHONS = ["3.11", "3.12", "3.13"]
FOLDERS = {"core": ROOT / "core"} | {path.parent.name: path.parent for path in ROOT.glob("plugins/*/pyproject.toml")}

ALONE = sorted([*FOLDERS, "runtime[distributed]", "runtime[durable]"])
"""The packages that `isolated` tries, each without extras; and with those that bring code of their own."""

nox.needs_version = ">=2026.4"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.download_python = "never"
nox.options.error_on_missing_interpreters = False  # an absent Python is reported as skipped
nox.options.sessions = ["lint", "types", "tests"]
os.environ["UV_PYTHON_DOWNLOADS"] = "never"


def reveal_pyenv_pythons() -> None:
    """Make every interpreter that pyenv holds answer to its name; its shims deny all but the selected one."""
    if shutil.which("pyenv") is None:
        return
    listed = subprocess.run(["pyenv", "versions", "--bare"], capture_output=True, text=True, check=False).stdout.split()
    plain = [version for version in listed if re.fullmatch(r"\d+\.\d+\.\d+", version)]
    running = ".".join(map(str, sys.version_info[:3]))
    usable = [version for version in plain if tuple(map(int, version.split(".")))[:2] >= OLDEST]
    os.environ["PYENV_VERSION"] = ":".join(sorted(usable, key=lambda version: version != running))


def project_table(folder: Path) -> dict[str, object]:
    """The [project] table of the package in that folder."""
    table: dict[str, object] = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    return table


def declared_folders(folder: Path) -> set[Path]:
    """The folder itself and those of the workspace's packages that it declares, and that they declare."""
    by_name = {project_table(candidate)["name"]: candidate for candidate in FOLDERS.values()}
    found, waiting = {folder}, [folder]
    while waiting:
        requirements = project_table(waiting.pop())["dependencies"]
        assert isinstance(requirements, list)
        names = {re.split(r"[^\w.-]", requirement, maxsplit=1)[0] for requirement in requirements}
        fresh = {by_name[name] for name in names & by_name.keys()} - found
        found |= fresh
        waiting += fresh
    return found


def sync(session: nox.Session, *groups: str) -> None:
    """Install the whole workspace into the session's environment, with these dependency groups or else with all."""
    environment = session.virtualenv.location
    chosen = ["--no-default-groups", *(f"--group={group}" for group in groups)] if groups else ["--all-groups"]
    session.run_install(
        *("uv", "sync", "--quiet", "--all-packages", *chosen, f"--python={environment}"),
        env={"UV_PROJECT_ENVIRONMENT": environment},
        external=True,
    )


reveal_pyenv_pythons()


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """The test suite on each installed Python; arguments after `--` go to pytest."""
    sync(session)
    session.run("pytest", *session.posargs)


@nox.session
@nox.parametrize("package", ALONE, ids=ALONE)
def isolated(session: nox.Session, package: str) -> None:
    """One package from built wheels: it, the sabir packages it declares, and what those require; or with an extra."""
    name, bracket, extra = package.partition("[")
    wheels = Path(session.create_tmp()).resolve() / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    for folder in sorted(declared_folders(FOLDERS[name])):
        session.run("uv", "build", "--quiet", "--wheel", "--out-dir", str(wheels), str(folder), external=True)
    session.chdir(wheels)  # away from the workspace, so that neither its sources nor its settings are seen
    module = str(project_table(FOLDERS[name])["name"]).replace("-", "_")
    session.install(*(
        f"{wheel}{bracket}{extra}" if wheel.name.startswith(f"{module}-") else str(wheel)
        for wheel in sorted(wheels.glob("*.whl"))
    ))  # fmt: skip
    session.run("python", "-I", "-W", "error", str(ROOT / "tests" / "isolation" / "check.py"), package)


@nox.session
def lint(session: nox.Session) -> None:
    """Lint, formatting, and the import contracts that hold every arrow to core."""
    sync(session)
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("lint-imports", "--no-cache")


@nox.session
def types(session: nox.Session) -> None:
    """Strict types over every package, this file, and the programs in tests/typing."""
    sync(session)
    session.run("mypy", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site into build/site. A broken link, a page outside the menu or any other warning is an error."""
    sync(session, "packages", "docs")
    arguments = ["-W", "--keep-going", "--quiet", "--jobs=auto", "--builder=html", *session.posargs]
    session.run("sphinx-build", *arguments, "docs", "build/site")


@nox.session
def examples(session: nox.Session) -> None:
    """Run every example of the README, of docs/ and of the skill."""
    sync(session)
    session.run("pytest", "tests/docs", *session.posargs)


@nox.session
def conformance(session: nox.Session) -> None:
    """The kit's suite on every dialect of this workspace, and on packages that are none of it."""
    sync(session)
    session.run("pytest", "tests/conformance", "tests/third_party", *session.posargs)


@nox.session
def record(session: nox.Session) -> None:
    """Record the cassettes and the histories of the kit anew; `-- -k 'OpenAIChat and text'` chooses some."""
    sync(session)
    session.run("pytest", "--sabir-record", "-n0", "tests/conformance", *(session.posargs or ["-k", "recorded"]))
    session.run("python", "-m", "tests.testing.write_histories")


@nox.session
def kit(session: nox.Session) -> None:
    """Every case of the conformance kit on every broken adapter, not those of its own family alone."""
    sync(session)
    arguments = session.posargs or ["-n", "auto"]
    session.run("pytest", "tests/testing/test_kit.py", *arguments, env={"SABIR_WHOLE_KIT": "1"})


@nox.session
def crashes(session: nox.Session) -> None:
    """Every crash matrix whole: a process killed at every point of a run, on every store and dialect."""
    sync(session)
    arguments = session.posargs or ["-n", "auto"]
    places = ["tests/session/crash", "tests/actors/crash", "tests/durable", "tests/session"]
    session.run("pytest", *places, *arguments, env={"SABIR_ALL_CRASHES": "1"})


@nox.session
def fuzz(session: nox.Session) -> None:
    """100,000 bodies of services, changed at random, through every decoder; `-- --count 5000 --seed 7` for others.

    Bodies of vendors are among them where SABIR_VENDOR_CASSETTES says where these are. What fails is in .cache/fuzz.
    """
    sync(session)
    session.run("python", "-m", "tests.fuzz", *session.posargs)


@nox.session
def models(session: nox.Session) -> None:
    """The models that the vendors' SDKs list and models.toml does not."""
    sync(session)
    session.run("python", "-m", "tests.missing_models")


@nox.session
def bench(session: nox.Session) -> None:
    """The benchmarks, and their page anew; `-- decode stream` runs some rows, `-- --quick` is for a look.

    Each contender gets an environment of its own under .cache/benchmarks, made once.
    """
    session.run("python", "-m", "tests.benchmarks", *session.posargs)
    if "--quick" not in session.posargs:
        session.run("python", "-m", "tests.benchmarks.report")


@nox.session
def build(session: nox.Session) -> None:
    """Wheel and source archive of every package, and a check of what their metadata tells users."""
    archives = Path(session.create_tmp()) / "archives"
    shutil.rmtree(archives, ignore_errors=True)
    session.run("uv", "build", "--quiet", "--all-packages", "--out-dir", str(archives), external=True)
    session.run("python", str(ROOT / "tests" / "isolation" / "wheels.py"), str(archives))
