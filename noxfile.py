"""Every chore by its name: `uv run --all-groups nox` lists them, `uv run --all-groups nox -s lint types` runs two.

    quick    lint, types and tests of core              lint, types, tests, isolated, build    what must hold
    format   rewrite the layout of all files            release -- --dry                       all but the upload

Each session makes an environment of its own. Most sync it from pyproject.toml; `isolated`, `build` and `release`
install built archives, as users do.
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

ALONE = sorted([*FOLDERS, "cli[inspect]", "runtime[distributed]", "runtime[durable]"])
"""The packages that `isolated` tries, each without extras; and with those that bring code of their own."""

GITHUB_FILES = {
    "github-workflows": ".github/workflows/*.yml",
    "github-issue-forms": ".github/ISSUE_TEMPLATE/[!c]*.yml",
    "github-issue-config": ".github/ISSUE_TEMPLATE/config.yml",
}
"""Schema of check-jsonschema → the files that `lint` checks with it. Forms are all but config.yml."""

nox.needs_version = ">=2026.4"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.download_python = "never"
nox.options.error_on_missing_interpreters = False  # an absent Python is reported as skipped
nox.options.sessions = []  # bare `nox` lists the sessions
os.environ["UV_PYTHON_DOWNLOADS"] = "never"


def reveal_pyenv_pythons() -> None:
    """Select every Python that pyenv has; by default its shims start the chosen one only."""
    if shutil.which("pyenv") is None:
        return
    listed = subprocess.run(["pyenv", "versions", "--bare"], capture_output=True, text=True, check=False).stdout.split()
    plain = [version for version in listed if re.fullmatch(r"\d+\.\d+\.\d+", version)]
    running = ".".join(map(str, sys.version_info[:3]))
    usable = [version for version in plain if tuple(map(int, version.split(".")))[:2] >= OLDEST]
    os.environ["PYENV_VERSION"] = ":".join(sorted(usable, key=lambda version: version != running))


def project_table(folder: Path) -> dict[str, object]:
    """Return the [project] table of the package in that folder."""
    table: dict[str, object] = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    return table


def declared_folders(folder: Path) -> set[Path]:
    """Return the folder of a package and of every workspace package that it requires, directly or not."""
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
    """Run all tests on each installed Python; arguments after `--` go to pytest."""
    sync(session)
    session.run("pytest", *session.posargs)


@nox.session
@nox.parametrize("package", ALONE, ids=ALONE)
def isolated(session: nox.Session, package: str) -> None:
    """Install one package, or one extra, from built wheels with what it requires, and check that it is complete."""
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
    """Check lint, formatting, import contracts, and the workflows and forms in .github/."""
    sync(session)
    run_linters(session)
    for schema, files in GITHUB_FILES.items():
        session.run("check-jsonschema", "--builtin-schema", f"vendor.{schema}", *map(str, sorted(ROOT.glob(files))))


def run_linters(session: nox.Session) -> None:
    """Check lint, formatting and import contracts of all files."""
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("lint-imports", "--no-cache")


@nox.session(reuse_venv=True)
def quick(session: nox.Session) -> None:
    """Check lint, and types and tests of core, in less than 90 seconds; arguments after `--` go to pytest."""
    sync(session)
    run_linters(session)
    session.run("mypy", "core/src")
    session.run("pytest", "tests/core", "-q", "-n", "auto", *session.posargs)


@nox.session(name="format", reuse_venv=True)
def format_files(session: nox.Session) -> None:
    """Rewrite all files as `lint` wants them: layout, order of imports, and what else ruff corrects safely."""
    session.install(*nox.project.dependency_groups(nox.project.load_toml("pyproject.toml"), "lint"))
    session.run("ruff", "check", "--fix")
    session.run("ruff", "format")


@nox.session(venv_backend="none")
def words(session: nox.Session) -> None:
    """Count the words of Markdown prose by folder, without code and generated parts."""
    session.run(sys.executable, "-m", "tests.docs.words")


@nox.session(reuse_venv=True)
def coverage(session: nox.Session) -> None:
    """Measure how much of core the tests of core and laws run; fail below the floor in pyproject.toml."""
    sync(session)
    session.run("coverage", "erase")
    report = ["--cov", "--cov-report=term:skip-covered"]
    session.run("pytest", "tests/core", "tests/authoring", "tests/laws", "-q", "-n", "auto", *report, *session.posargs)


@nox.session
def types(session: nox.Session) -> None:
    """Check strict types of every package, this file, and the programs in tests/typing."""
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
    """Run the conformance kit on every dialect of this workspace and on packages outside it."""
    sync(session)
    places = ["tests/conformance", "tests/third_party"]
    session.run("pytest", *places, *session.posargs, env={"SABIR_EXAMPLES": "400"})


@nox.session
def record(session: nox.Session) -> None:
    """Record the cassettes and histories of the kit again; `-- -k 'OpenAIChat and text'` chooses some."""
    sync(session)
    session.run("pytest", "--sabir-record", "-n0", "tests/conformance", *(session.posargs or ["-k", "recorded"]))
    session.run("python", "-m", "tests.testing.write_histories")


@nox.session
def kit(session: nox.Session) -> None:
    """Run every case of the conformance kit on every broken adapter, not only the case that is named for it."""
    sync(session)
    arguments = session.posargs or ["-n", "auto"]
    session.run("pytest", "tests/testing/test_kit.py", *arguments, env={"SABIR_WHOLE_KIT": "1"})


@nox.session
def crashes(session: nox.Session) -> None:
    """Kill a process at every point of a run, on every store and dialect."""
    sync(session)
    arguments = session.posargs or ["-n", "auto"]
    places = ["tests/session/crash", "tests/actors/crash", "tests/durable", "tests/session"]
    session.run("pytest", *places, *arguments, env={"SABIR_ALL_CRASHES": "1"})


@nox.session
def browser(session: nox.Session) -> None:
    """Run the tests of `sabir inspect` in a real browser: Chromium, from the PATH or the variable SABIR_BROWSER."""
    sync(session)
    program = os.environ.get("SABIR_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        session.error("no Chromium was found; install it (apt-get install chromium), or set SABIR_BROWSER to its path")
    session.run("pytest", "tests/cli/inspect", *session.posargs, env={"SABIR_BROWSER": program})


@nox.session
def fuzz(session: nox.Session) -> None:
    """Decode 100,000 randomly changed responses with every decoder; `-- --count 5000 --seed 7` chooses others.

    Recorded responses of vendors are included if SABIR_VENDOR_CASSETTES names their folder. Failures are written to
    .cache/fuzz.
    """
    sync(session)
    session.run("python", "-m", "tests.fuzz", *session.posargs)


@nox.session
def models(session: nox.Session) -> None:
    """List the models that the vendors' SDKs name and models.toml does not."""
    sync(session)
    session.run("python", "-m", "tests.missing_models")


@nox.session
def bench(session: nox.Session) -> None:
    """Run the benchmarks and write their page; `-- decode stream` runs some rows, `-- --quick` writes no page.

    Each contender gets its own environment under .cache/benchmarks, which is created once. The tests of the benchmarks
    run first: they check that every contender does the same work, and time nothing.
    """
    sync(session)
    session.run("pytest", "benchmarks", "-q", "-n", "auto")
    session.run("python", "-m", "benchmarks", *session.posargs)
    if "--quick" not in session.posargs:
        session.run("python", "-m", "benchmarks.report")


@nox.session
def referee(session: nox.Session) -> None:
    """Judge what five libraries lose when the provider changes, and write the page; `-- sabir lm15` prints two.

    The libraries get the same environments as in the benchmarks. The tests of the judge run first. Recorded
    conversations of vendors are included if SABIR_VENDOR_CASSETTES names their folder.
    """
    sync(session)
    session.run("pytest", "referee", "-q")
    session.run("python", "-m", "referee", *session.posargs)


@nox.session
def build(session: nox.Session) -> None:
    """Build wheel and source archive of every package, and check their contents and metadata."""
    archives = Path(session.create_tmp()) / "archives"
    shutil.rmtree(archives, ignore_errors=True)
    session.run("uv", "build", "--quiet", "--all-packages", "--out-dir", str(archives), external=True)
    session.run("python", str(ROOT / "tests" / "isolation" / "wheels.py"), str(archives))


@nox.session
def release(session: nox.Session) -> None:
    """Rehearse a release with `-- --dry`; `-- --version X.Y.Z` and `-- --repository URL` write to all packages."""
    session.install("readme-renderer[md]>=44", "twine>=6")
    session.run("python", "-m", "tests.release", *session.posargs)
