"""The embedded model server: llama.cpp behind a loopback port, in a child process that ends with this process.

    LocalServer ── first use ──▶ child process (server_program.py) ── OpenAI's API, http://127.0.0.1:<any free port>
         └── stop(), garbage collection, or the end of this process in any way closes a pipe: the child ends

models.py finds the weights. The logger `sabir.local` reports the loaded file and its size at level INFO, and a server
that stopped by itself at level WARNING.

A random key prevents other users of the machine from using the server. The default is one thread, because on shared
cores more threads are slower. For a request without a temperature, the server uses 0, so that answers are repeatable.
For a request without `max_tokens`, it uses `output_tokens`, because a small model may repeat itself until its context
is full.

For calls of options, requests need these fields (template.jinja does the rest):

    last message          option choice               fields to send
    ────────────────────  ──────────────────────────  ─────────────────────────────────────────────────────────────
    the user's            open ("auto" or unset)      tool_choice "required", parallel_tool_calls false
    an option's result    open                        tool_choice "none", the tools as before
    any                   required                    "required", false, chat_template_kwargs {"expects_call": true}
    any                   an option's name            as for required, and only this tool: the server ignores the name
    any                   none                        "none", chat_template_kwargs {"expects_call": false}

So a loop over calls ends after one call for each message of the user. "auto" after the user's message is an error
(500). Arguments in the history must be JSON objects; for other arguments the server answers 500, so send {} instead.

Measured with SmolLM2-135M-Instruct.Q4_1 at temperature 0 with these fields and one option, with the same result
streamed and not streamed, by `SABIR_LOCAL_ALL_QUESTIONS=1 pytest -s tests/local/test_calling.py -k one_option`:

    questions                                 calls    right arguments    answers that use the result
    48, used while writing the template       48       42                 48
    16, written afterwards                    16       12                 15

With two options, the model always calls one of them, but the right one only in 29 of 48 questions.
"""

import json
import logging
import os
import re
import secrets
import subprocess
import sys
import tempfile
import weakref
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from threading import Lock, Thread
from typing import IO

from sabir.errors import CallError, SettingsInvalid

from sabir_local import server_program
from sabir_local.models import EMBEDDED, find_model, find_weights, format_size, template_name


class ServerNotStarted(CallError):
    """Raised if the embedded server cannot be started with these weights, or not within `start_seconds`. The text names
    the reason and the remedy.
    """


THREADS_VARIABLE = "SABIR_LOCAL_THREADS"
"""The environment variable with the default number of threads."""
CONTEXT_TOKENS = 4096
"""The default context window, in tokens."""
OUTPUT_TOKENS = 512
"""The default limit of an answer, in tokens."""
START_SECONDS = 60.0
"""The default maximum time for starting a server, in seconds."""

_STOP_SECONDS = 5.0
_logger = logging.getLogger("sabir.local")
_error_line = re.compile(rb"^\S+ E (?:\S+: +)?(?P<reason>.*\w.*)$", re.MULTILINE)


class LocalServer:
    """A server for one model on one port, started at first use. Pass it as `client=` of a `local:` adapter.

    Threads may share a server; a forked process starts its own. `weights` is a GGUF file, by default the embedded
    model. `threads` is the number of threads, by default SABIR_LOCAL_THREADS or 1. `context_tokens` is the context
    window, in tokens, for prompt and answer together. `output_tokens` is the maximum of an answer, in tokens, for
    requests that set none. `template` is the text of a Jinja chat template that replaces the default template.
    `start_seconds` is the maximum time for starting, in seconds.

    Raises SettingsInvalid if `threads`, `context_tokens` or `output_tokens` is below 1, or if SABIR_LOCAL_THREADS is
    used and is not a whole number.
    """

    def __init__(
        self,
        weights: str | Path | None = None,
        *,
        threads: int | None = None,
        context_tokens: int = CONTEXT_TOKENS,
        output_tokens: int = OUTPUT_TOKENS,
        template: str | None = None,
        start_seconds: float = START_SECONDS,
    ) -> None:
        self._weights = weights
        self._threads = threads if threads is not None else _threads_of_environment()
        self._context_tokens = context_tokens
        self._output_tokens = output_tokens
        self._template = template
        self._start_seconds = start_seconds
        for name, number in (
            ("threads", self._threads),
            ("context_tokens", context_tokens),
            ("output_tokens", output_tokens),
        ):
            if number < 1:
                raise SettingsInvalid(f"{name} of a LocalServer is {number}; use 1 or more")
        self._lock = Lock()
        self._child: _ServerProcess | None = None
        self._address = ""
        self.api_key = secrets.token_urlsafe(24)
        """The bearer token that the server requires in every request."""

    def __repr__(self) -> str:
        return f"LocalServer(weights={self._weights!r}, threads={self._threads}, is_running={self.is_running})"

    @property
    def is_running(self) -> bool:
        """Whether the server's process is running and was started by this process, not by the parent of a fork."""
        return self._child is not None and self._child.is_alive

    @property
    def address(self) -> str:
        """The server's URL without a path, such as "http://127.0.0.1:40123". Reading it starts the server if needed,
        and waits until the server is ready. Each start uses any free port.

        Raises WeightsMissing or ServerNotStarted if the server cannot be started.
        """
        with self._lock:
            if not self.is_running:
                if self._child is not None and self._child.exit_code is not None:
                    _logger.warning(
                        "the embedded server stopped (exit code %s); starting it again", self._child.exit_code
                    )
                self._stop_child()
                self._child, self._address = self._start()
            return self._address

    def stop(self) -> None:
        """Stop the server that this process started. Running requests fail. A second call is harmless, and a later use
        starts the server again.
        """
        with self._lock:
            self._stop_child()

    def _stop_child(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.stop()

    def _start(self) -> "tuple[_ServerProcess, str]":
        """Start a child process with the weights, and return it with its address. Stops the child if it does not start.

        Raises WeightsMissing or ServerNotStarted.
        """
        weights = find_weights(self._weights)
        _logger.info("loading %s, %s, from %s", weights.stem, format_size(weights.stat().st_size), weights.resolve())
        try:
            child = _ServerProcess(
                {
                    "import_path": sys.path,
                    "weights": str(weights),
                    "model": weights.stem,
                    "api_key": self.api_key,
                    "threads": self._threads,
                    "context_tokens": self._context_tokens,
                    "output_tokens": self._output_tokens,
                    "template": self._template if self._template is not None else template_for(weights),
                }
            )
        except OSError as error:
            message = f"the embedded server cannot start a process of {sys.executable!r}: {error}"
            raise ServerNotStarted(message, provider="local") from error
        weakref.finalize(self, child.stop)  # also runs at exit
        try:
            return child, child.address(self._start_seconds)
        except BaseException as error:  # also KeyboardInterrupt, because nothing else would stop the child
            child.stop(seconds=0)
            if isinstance(error, _NoAddress):
                message = f"the embedded server did not start with {weights.name}: {error}"
                raise ServerNotStarted(message, provider="local") from None
            raise


class _NoAddress(Exception):
    """Raised if the child process does not report an address. The text is the reason, for the end of an error
    message.
    """


class _ServerProcess:
    """One child process with a server. Only the process that created the child stops it; a forked process does not."""

    def __init__(self, options: server_program.ServerOptions) -> None:
        self._owner = os.getpid()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (stop closes it)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-X", "utf8", server_program.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=0,
            start_new_session=True,  # so that Ctrl-C in the terminal does not end the child
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        self._line = b""
        self._reader = Thread(target=self._read_line, name="sabir-local-start", daemon=True)
        self._reader.start()
        assert self._process.stdin is not None  # because of stdin=PIPE
        self._input: IO[bytes] = self._process.stdin
        with suppress(BrokenPipeError):  # the child ended at once; address() raises the reason
            self._input.write(json.dumps(options).encode() + b"\n")

    @property
    def is_alive(self) -> bool:
        return self._owner == os.getpid() and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """The child's exit code, negative for a signal; None while it runs, and in a forked process."""
        return self._process.poll() if self._owner == os.getpid() else None

    def address(self, seconds: float) -> str:
        """Wait for the address that the child reports, and return the address. Raises _NoAddress if the child ends
        first, or after `seconds`.
        """
        self._reader.join(seconds)
        if self._reader.is_alive():
            problem = f"the server was not ready after {seconds:g} s"
            raise _NoAddress(f"{problem}; use a longer start_seconds or fewer threads")
        if not self._line:
            self._process.wait(_STOP_SECONDS)
            raise _NoAddress(f"{self._error_reason()}; try other weights or a smaller context_tokens")
        return self._line.decode().strip()

    def stop(self, seconds: float = _STOP_SECONDS) -> None:
        """End the child: close its input, and kill the child if it has not ended after `seconds`. A second call is
        harmless. In a forked process, only close the files.
        """
        self._input.close()
        self._errors.close()
        if self._owner != os.getpid():
            self._process.returncode = 0  # only the parent may wait for the child
            return
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()

    def _read_line(self) -> None:
        """Read the child's first line, the address. Runs in a thread, so that waiting for the address can time out."""
        assert self._process.stdout is not None
        with self._process.stdout as output:
            self._line = output.readline()

    def _error_reason(self) -> str:
        """Return the first error that llama.cpp reported; else the last line of its output, or the exit code."""
        self._errors.seek(0)
        written = self._errors.read()
        reason = _error_line.search(written)
        lines = written.decode(errors="replace").strip().splitlines()
        if reason is not None:
            return reason["reason"].decode(errors="replace").strip()
        return lines[-1] if lines else f"the local model server ended with exit code {self._process.returncode}"


def template_for(weights: Path) -> str:
    """Return the text of this package's chat template for these weights; "" if the weights' own template is used."""
    own = template_name(weights.name)
    return files("sabir_local").joinpath(own).read_text("utf-8") if own else ""


def _threads_of_environment() -> int:
    text = os.environ.get(THREADS_VARIABLE, "1")
    if not text.isdecimal():
        raise SettingsInvalid(f"{THREADS_VARIABLE} is {text!r}; set it to a whole number, 1 or more")
    return int(text)


_shared_lock = Lock()


def shared_server(model: str = EMBEDDED) -> LocalServer:
    """Return the server for a model that all adapters of this process share, unless `client=` names another server. One
    server is created for each file of weights.

    Raises WeightsMissing if there are no usable weights, and SettingsInvalid for an invalid SABIR_LOCAL_THREADS.
    """
    weights = find_model(model)
    with _shared_lock:
        return _server_of(weights)


@cache
def _server_of(weights: Path) -> LocalServer:
    return LocalServer(weights)
