"""The servers that cassettes are recorded from, each on a free loopback port, behind a random key, stopped for certain.

    embedded ── llama.cpp with the embedded weights: OpenAI's wires and Anthropic's
    proxy ───── LiteLLM, in an environment of its own, before the embedded server: Gemini's wire
    mock ────── aimock, in a folder of its own: what neither of them can show (thinking, rate limits, overload)

The proxy and the mock are installed at their first use, under SABIR_RECORDING_CACHE or the user's cache; never into
the environment that runs this. ServerUnavailable says in one line why one cannot be had; nothing here waits for ever.
"""

import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from threading import Event, Thread
from typing import IO

from sabir.errors import SabirError
from sabir_local.models import find_weights
from sabir_local.server import LocalServer, template_for

from tests.recorded.wires import LOCAL_MODEL, WIRES

CACHE_VARIABLE = "SABIR_RECORDING_CACHE"
LITELLM = "1.106.2"
AIMOCK = "1.43.0"
INSTALL_SECONDS = 600.0
START_SECONDS = 90.0
STOP_SECONDS = 10.0

PASSED_ON = ("PATH", "HOME", "LANG", "TMPDIR", "SSL_CERT_FILE")
"""What a server gets of this process's environment: no vendor's key, no setting of a vendor's SDK."""


class ServerUnavailable(Exception):
    """A server could not be installed or started; one line says why."""


@dataclass(frozen=True)
class Server:
    """A server that answers now. `address` has no path; `provenance` says in a cassette who answered."""

    address: str
    api_key: str
    provenance: Mapping[str, str]


@contextmanager
def embedded() -> Iterator[Server]:
    """The embedded model behind llama.cpp's server."""
    try:
        weights = find_weights(None)
        server = LocalServer(weights, template=with_single_calls(template_for(weights)))
        address = server.address
    except SabirError as error:
        raise ServerUnavailable(str(error)) from error
    provenance = {
        "server": "xllamacpp (llama.cpp), embedded; not a vendor's own service",
        "version": version("xllamacpp"),
        "weights": weights.name,
    }
    try:
        yield Server(address, server.api_key, provenance)
    finally:
        server.stop()


def with_single_calls(template: str) -> str:
    """The template, showing one call a turn: the server then makes one, where a wire has no word for that.

    It ignores Anthropic's `disable_parallel_tool_use`, Gemini's wire has none, and this model repeats its call.
    """
    every = "{%- for call in message.tool_calls -%}"
    if every not in template:
        raise ServerUnavailable(f"the embedded model's template has no {every!r}; adapt tests/recorded/servers.py")
    return template.replace(every, "{%- for call in message.tool_calls[:1] -%}")


@contextmanager
def proxy(behind: Server) -> Iterator[Server]:
    """LiteLLM's proxy, which speaks Gemini's wire (v1beta) before that server."""
    command = install_litellm()
    key = f"sk-{secrets.token_urlsafe(24)}"
    provenance = {
        "server": f"LiteLLM proxy before {behind.provenance['server']}",
        "version": f"{LITELLM} before {behind.provenance['version']}",
        "weights": behind.provenance["weights"],
    }
    variables = {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_MASTER_KEY": key,
        "LITELLM_TELEMETRY": "False",
        "BEHIND_KEY": behind.api_key,
    }
    with tempfile.TemporaryDirectory(prefix="sabir-proxy-") as folder:
        settings = Path(folder) / "settings.json"  # JSON is YAML too
        settings.write_text(json.dumps(_proxy_settings(behind)), encoding="utf-8")
        arguments = ["--config", str(settings), "--host", "127.0.0.1", "--port", "0"]
        with running("litellm", [str(command), *arguments], variables, r"running on (http://127\.0\.0\.1:\d+)") as url:
            yield Server(url, key, provenance)


def _proxy_settings(behind: Server) -> Mapping[str, object]:
    parameters = {
        "model": f"openai/{LOCAL_MODEL}",
        "api_base": f"{behind.address}/v1",
        "api_key": "os.environ/BEHIND_KEY",
    }
    names = (LOCAL_MODEL, WIRES["google.generate_content"].vendor_model)
    return {
        "model_list": [{"model_name": name, "litellm_params": parameters} for name in names],
        "litellm_settings": {"num_retries": 0, "telemetry": False},
        "router_settings": {"num_retries": 0, "disable_cooldowns": True},
    }


@contextmanager
def mock(fixtures: Mapping[str, object]) -> Iterator[Server]:
    """aimock with those answers, in its own format: every wire, and nothing of a vendor's."""
    command = install_aimock()
    key = f"mock-{secrets.token_urlsafe(24)}"
    provenance = {"server": "aimock, a third-party mock, not a vendor", "version": AIMOCK}
    with tempfile.TemporaryDirectory(prefix="sabir-mock-") as folder:
        file = Path(folder) / "fixtures.json"
        file.write_text(json.dumps(fixtures), encoding="utf-8")
        arguments = ["--host", "127.0.0.1", "--port", "0", "--strict", "--validate-on-load", "--fixtures", str(file)]
        ready = r"listening on (http://127\.0\.0\.1:\d+)"
        with running("aimock", [*command, *arguments], {"AIMOCK_API_KEYS": key}, ready) as url:
            yield Server(url, key, provenance)


# --- installing -----------------------------------------------------------------------------------------------------


def cache_folder() -> Path:
    """Where the proxy and the mock are kept between recordings."""
    named = os.environ.get(CACHE_VARIABLE)
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(named).expanduser() if named else base / "sabir-recording"


def install_litellm() -> Path:
    """The proxy's program, from an environment of its own."""
    folder = cache_folder() / f"litellm-{LITELLM}-python{sys.version_info.major}.{sys.version_info.minor}"
    python = folder / "bin" / "python"
    uv = _program("uv")
    with _installing(folder) as is_wanted:
        if is_wanted:
            _run([uv, "venv", "--quiet", "--python", sys.executable, str(folder)])
            _run([uv, "pip", "install", "--quiet", "--python", str(python), f"litellm[proxy]=={LITELLM}"])
    return folder / "bin" / "litellm"


def install_aimock() -> Sequence[str]:
    """The mock's command, from a folder of its own."""
    folder = cache_folder() / f"aimock-{AIMOCK}"
    npm, node = _program("npm"), _program("node")
    with _installing(folder) as is_wanted:
        if is_wanted:
            package = f"@copilotkit/aimock@{AIMOCK}"
            _run([npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--ignore-scripts", package])
    return [node, str(folder / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js")]


@contextmanager
def _installing(folder: Path) -> Iterator[bool]:
    """Whether that folder is to be filled; one that was left half full is emptied first."""
    stamp = folder / ".complete"
    is_wanted = not stamp.exists()
    if is_wanted:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    yield is_wanted
    stamp.touch()


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise ServerUnavailable(f"recording needs the program {name!r}, which is not on the path; install it")
    return found


def _run(command: Sequence[str]) -> None:
    shown = " ".join(Path(word).name for word in command[:3])
    try:
        done = subprocess.run(
            command,
            cwd=cache_folder(),  # away from the workspace, whose settings are not meant for this
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=INSTALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ServerUnavailable(f"`{shown} …` took longer than {INSTALL_SECONDS:g} s; check the network") from None
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()
        written = [line for line in lines if "complete log" not in line]  # npm's last words
        said = written[-1] if written else f"exit code {done.returncode}"
        raise ServerUnavailable(f"`{shown} …` failed: {said.strip()}; check the network")


# --- running --------------------------------------------------------------------------------------------------------


@contextmanager
def running(name: str, command: Sequence[str], variables: Mapping[str, str], ready: str) -> Iterator[str]:
    """The address that the program writes where `ready` matches; its whole process group ends with the block.

    ServerUnavailable where it ends before, or takes longer than START_SECONDS; what it wrote is in its log.
    """
    inherited = {variable: os.environ[variable] for variable in PASSED_ON if variable in os.environ}
    cache_folder().mkdir(parents=True, exist_ok=True)
    log = cache_folder() / f"{name}.log"
    with tempfile.TemporaryDirectory(prefix=f"sabir-{name}-") as folder, log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(
            command,
            cwd=folder,  # where no settings file lies that it might read
            env={**inherited, "PYTHONUNBUFFERED": "1", **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        assert process.stdout is not None  # PIPE was asked for
        output = _Output(process.stdout, file, re.compile(ready))
        try:
            yield output.address(name, log)
        finally:
            _stop(process)
            output.join()


class _Output:
    """What a server writes: copied to its log, and searched for its address until that is found."""

    def __init__(self, stream: IO[str], log: IO[str], ready: re.Pattern[str]) -> None:
        self._stream, self._log, self._ready = stream, log, ready
        self._found = ""
        self._last = "nothing"
        self._known = Event()
        self._thread = Thread(target=self._copy, daemon=True)
        self._thread.start()

    def address(self, name: str, log: Path) -> str:
        """The address; waits for it, or for the end of the output."""
        if not self._known.wait(START_SECONDS):
            raise ServerUnavailable(f"{name} was not ready after {START_SECONDS:g} s; see {log}")
        if not self._found:
            raise ServerUnavailable(f"{name} ended before it was ready, saying {self._last!r}; see {log}")
        return self._found

    def join(self) -> None:
        """Wait for the end of the output, which is the end of the group."""
        self._thread.join(STOP_SECONDS)

    def _copy(self) -> None:
        with self._stream:
            for line in self._stream:
                self._log.write(line)
                self._log.flush()
                self._last = line.strip() or self._last
                match = self._ready.search(line)
                if match and not self._found:
                    self._found = match[1]
                    self._known.set()
        self._known.set()


def _stop(process: "subprocess.Popen[str]") -> None:
    """End the whole group: asked first, then by force."""
    for kind in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, kind)
        except ProcessLookupError:
            break
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            continue
    process.wait()
