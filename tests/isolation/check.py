"""Run inside an environment that holds one package from its wheels: is it complete, and alone?

    python -I tests/isolation/check.py core|anthropic|runtime[durable]|…|all

Needs what is under test, and no network, key or model. Exits 1 with one line for each fault.
"""

import importlib
import importlib.metadata
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

CORE_BRINGS = {
    "annotated-types",
    "pluggy",
    "pydantic",
    "pydantic-core",
    "sabir",
    "typing-extensions",
    "typing-inspection",
}
INSTALLERS = {"pip", "setuptools", "wheel"}
SDKS = {"anthropic", "cohere", "google-genai", "groq", "mistralai", "openai", "xllamacpp"}
SDK_MODULES = ("anthropic", "cohere", "google.genai", "groq", "httpx", "httpx2", "mistralai", "openai", "xllamacpp")


@dataclass(frozen=True)
class Expected:
    """What one package brings: sabir packages, vendors' libraries, and what is tried on it."""

    packages: frozenset[str]
    sdks: frozenset[str] = frozenset()
    alone: bool = False
    """Whether core's own requirements are all that there is."""
    extra: Callable[[], Iterator[str]] | None = None


def installed() -> set[str]:
    """Names of all installed distributions, without what only installs others."""
    names = {distribution.name for distribution in importlib.metadata.distributions()}
    return {name.lower().replace("_", "-") for name in names} - INSTALLERS


def installed_faults(expected: Expected) -> Iterator[str]:
    """CD-02, CD-03: the declared packages and vendors' libraries, and no other."""
    names = installed()
    packages = {name for name in names if name == "sabir" or name.startswith("sabir-")}
    if packages != expected.packages:
        yield f"installed are {sorted(packages)}, expected {sorted(expected.packages)}"
    if names & SDKS != expected.sdks:
        yield f"vendors' libraries are {sorted(names & SDKS)}, expected {sorted(expected.sdks)}"
    if expected.alone and names != CORE_BRINGS | expected.packages:
        yield f"beside core's own requirements there are {sorted(names - CORE_BRINGS - expected.packages)}"


def import_faults(expected: Expected) -> Iterator[str]:
    """Every package can be imported and exports what it says."""
    for name in sorted(expected.packages):
        module = importlib.import_module(name.replace("-", "_"))
        if not Path(str(module.__file__)).is_relative_to(sys.prefix):
            yield f"{name} was imported from {module.__file__}, not from its wheel"
        for exported in getattr(module, "__all__", ()):
            if not hasattr(module, exported):
                yield f"{name} exports {exported}, which it does not have"


def provider_faults() -> Iterator[str]:
    """CD-03, CD-05: core lists just the installed providers; each renders without key, network or SDK."""
    import sabir

    declared = {entry.name for entry in importlib.metadata.entry_points(group="sabir.providers")}
    listed = {row.name for row in sabir.providers()}
    if listed != declared:
        yield f"sabir.providers() lists {sorted(listed)}, the installed packages declare {sorted(declared)}"
    for name in [name for row in sabir.providers() for name in row.names[:1]]:
        rendering = sabir.adapter(f"{name}:some-model").render(
            [sabir.system("Be brief."), sabir.user("Umbrella today?")]
        )
        if b"Umbrella today?" not in rendering.body_bytes:
            yield f"{name} rendered a request without its text: {rendering.body_bytes!r}"
    loaded = [module for module in SDK_MODULES if module in sys.modules]
    if loaded:
        yield f"listing and rendering imported {loaded}"
    try:
        sabir.adapter("nowhere:some-model")
    except sabir.SabirError as error:
        if "package that provides 'nowhere'" not in str(error) or any(name not in str(error) for name in declared):
            yield f"the error for a missing provider names not how one is found and what is installed: {error}"
    else:
        yield "a provider that is not installed was accepted"


BESIDE_A_BROKEN_ONE = """
import sabir
states = {row.name: row.state for row in sabir.providers()}
assert states.pop("broken") == "failed", states
for name in [name for row in sabir.providers() if row.name in states for name in row.names[:1]]:
    assert sabir.adapter(f"{name}:some-model").render("Hello").body_bytes
try:
    sabir.adapter("broken:some-model")
except sabir.errors.ProviderBroken as error:
    assert "no disk" in str(error), error
else:
    raise SystemExit("a broken provider was taken for a whole one")
"""


def broken_plugin_faults() -> Iterator[str]:
    """CD-13: a plugin that cannot be loaded is named, and stops none of those that can."""
    with tempfile.TemporaryDirectory() as folder:
        metadata = Path(folder) / "broken_plugin-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-plugin\nVersion: 1.0\n", "utf-8")
        (metadata / "entry_points.txt").write_text("[sabir.providers]\nbroken = broken_plugin:provider\n", "utf-8")
        (Path(folder) / "broken_plugin.py").write_text("raise OSError('no disk')\n", "utf-8")
        finished = subprocess.run(
            [sys.executable, "-W", "error", "-c", BESIDE_A_BROKEN_ONE],
            env={**os.environ, "PYTHONPATH": folder},
            capture_output=True,
            text=True,
            check=False,
        )
    if finished.returncode != 0:
        yield f"beside a broken plugin: {finished.stderr.strip()[-500:]}"


def command_faults() -> Iterator[str]:
    """The `sabir` command is installed beside the interpreter and starts."""
    command = Path(sysconfig.get_path("scripts")) / "sabir"
    for arguments in (["--help"], ["--version"], ["providers", "--json"]):
        finished = subprocess.run([command, *arguments], capture_output=True, text=True, check=False)
        if finished.returncode != 0 or not finished.stdout.strip():
            yield f"`sabir {' '.join(arguments)}` exited {finished.returncode}: {finished.stderr.strip()}"


def page_faults(*, has_server: bool) -> Iterator[str]:
    """`sabir inspect` writes a file without its extra, and names the extra where a server is wanted."""
    yield from command_faults()
    with tempfile.TemporaryDirectory() as folder:
        page, history = Path(folder) / "page.html", Path(folder) / "history.json"
        history.write_text(
            '[{"policy": "user", "payload": {"kind": "parts", "parts": [{"kind": "text", "text": "hi"}]}}]'
        )
        command = Path(sysconfig.get_path("scripts")) / "sabir"
        finished = subprocess.run([command, "inspect", history, "--html", page], capture_output=True, check=False)
        if finished.returncode != 0 or b"<!DOCTYPE html>" not in page.read_bytes():
            yield f"`sabir inspect --html` exited {finished.returncode}: {finished.stderr.decode()}"
        if has_server:
            importlib.import_module("sabir_cli.inspect.server")
            importlib.import_module("yaml")
            return
        finished = subprocess.run([command, "inspect", history, "--no-open"], capture_output=True, check=False)
        if b'pip install "sabir-cli[inspect]"' not in finished.stderr:
            yield f"`sabir inspect` does not name its extra: {finished.stderr.decode()}"


KIT_PROGRAM = """
import sabir
from sabir_testing import FULL, ScriptedAdapter, call

class TestProgram:
    def test_it_asks_once(self, scripted, no_network):
        llm = scripted("Hello!")
        assert llm.complete_sync("Hi.").text == "Hello!"
"""


def kit_faults() -> Iterator[str]:
    """pytest finds the kit by its entry point, every name of it loads, and a user's test runs on its doubles."""
    import sabir_testing

    for name in sabir_testing.__all__:
        getattr(sabir_testing, name)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "test_program.py").write_text(KIT_PROGRAM, "utf-8")
        finished = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-W", "error", folder],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
    if finished.returncode != 0 or "1 passed" not in finished.stdout:
        yield f"a test on the kit's doubles: {finished.stdout.strip()[-800:]}"


def template_faults() -> Iterator[str]:
    """The named templates are in the wheel: a message of each kind is rendered."""
    from sabir_roles import ActionRequest, ActionResponse, AssistantResponse, Instruction, System

    request = ActionRequest.create("weather", {"city": "Paris"})
    for message in (
        System.create(),
        Instruction.create("Umbrella?", guidance="Be brief."),
        AssistantResponse.create("Take one."),
        ActionResponse.create(request, "rain"),
        request,
    ):
        if not message.text:
            yield f"{message!r} was rendered to nothing"


RUNTIME = frozenset({"sabir", "sabir-runtime"})
RUNNERS = {"distributed": "DistributedRunner", "durable": "DurableRunner"}
"""Extra of sabir-runtime → the runner that it brings."""
RUNNER_LIBRARIES = {"dbos", "nats", "psycopg", "sqlalchemy"}


def extras_faults(*installed_extras: str) -> Iterator[str]:
    """The names of an installed extra load, and the runner of another names the extra; neither is loaded unasked."""
    for extra in RUNNERS:
        importlib.import_module(f"sabir_runtime.{extra}.command")
        if loaded := RUNNER_LIBRARIES & sys.modules.keys():
            yield f"importing sabir_runtime, its package {extra} and its command imported {sorted(loaded)}"
    for extra, runner in RUNNERS.items():
        module = importlib.import_module(f"sabir_runtime.{extra}")
        try:
            for name in module.__all__ if extra in installed_extras else (runner,):
                getattr(module, name)
        except ImportError as error:
            if extra in installed_extras or not str(error).endswith(f'pip install "sabir-runtime[{extra}]"'):
                yield f"{module.__name__}: {type(error).__name__}: {error}"
        else:
            if extra not in installed_extras:
                yield f"{module.__name__}.{runner} was imported without its extra"


COMMAND = frozenset({"sabir", "sabir-cli", "sabir-session"})
EXPECTED = {
    "actors": Expected(packages=frozenset({"sabir", "sabir-actors", "sabir-session"})),
    "core": Expected(packages=frozenset({"sabir"}), alone=True),
    "calls": Expected(packages=frozenset({"sabir", "sabir-calls"}), alone=True),
    "echo": Expected(packages=frozenset({"sabir", "sabir-echo"}), alone=True),
    "embeddings": Expected(packages=frozenset({"sabir", "sabir-embeddings"}), alone=True),
    "openai": Expected(packages=frozenset({"sabir", "sabir-openai"}), sdks=frozenset({"openai"})),
    "local": Expected(
        packages=frozenset({"sabir", "sabir-local", "sabir-openai"}), sdks=frozenset({"openai", "xllamacpp"})
    ),
    "media": Expected(packages=frozenset({"sabir", "sabir-media"})),
    "anthropic": Expected(packages=frozenset({"sabir", "sabir-anthropic"}), sdks=frozenset({"anthropic"})),
    "google": Expected(packages=frozenset({"sabir", "sabir-google"}), sdks=frozenset({"google-genai"})),
    "otel": Expected(packages=frozenset({"sabir", "sabir-otel"})),
    "prices": Expected(packages=frozenset({"sabir", "sabir-prices"})),
    "roles": Expected(packages=frozenset({"sabir", "sabir-roles"}), extra=template_faults),
    "session": Expected(packages=frozenset({"sabir", "sabir-session"})),
    "runtime": Expected(packages=RUNTIME, alone=True, extra=extras_faults),
    "runtime[distributed]": Expected(packages=RUNTIME, extra=partial(extras_faults, "distributed")),
    "runtime[durable]": Expected(packages=RUNTIME, extra=partial(extras_faults, "durable")),
    "mcp": Expected(packages=frozenset({"sabir", "sabir-mcp"})),
    "cli": Expected(packages=COMMAND, extra=partial(page_faults, has_server=False)),
    "cli[inspect]": Expected(packages=COMMAND, extra=partial(page_faults, has_server=True)),
    "testing": Expected(packages=frozenset({"sabir", "sabir-testing"}), extra=kit_faults),
}
ALL = "all"
"""The label of an environment that holds every package, without extras."""
EXPECTED[ALL] = Expected(
    packages=frozenset[str]().union(*(each.packages for each in EXPECTED.values())),
    sdks=frozenset[str]().union(*(each.sdks for each in EXPECTED.values())),
)


def main(package: str) -> int:
    """Print what is wrong with the environment of that package; 1 when anything is."""
    expected = EXPECTED[package]
    # Providers first: the check that rendering imports no SDK must not meet one that another check imported.
    faults = [*installed_faults(expected), *provider_faults(), *broken_plugin_faults(), *import_faults(expected)]
    if expected.extra is not None:
        faults += expected.extra()
    print("\n".join(faults) or f"{package}: complete, and nothing else is installed")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
