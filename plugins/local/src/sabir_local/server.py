"""The embedded model server: llama.cpp behind a loopback port, in a child process that ends with this one.

    LocalServer ── first use ──▶ child process (engine.py) ── OpenAI's wire, http://127.0.0.1:<any free port>
         └── stop(), garbage collection, or the end of this process in any way closes a pipe: the child ends

Which weights it loads: models.py. The log `sabir.local` says at level INFO what is loaded, from where, and how large.

A random key keeps other users of the machine out. One thread by default: on shared cores, more threads are slower.
A request that names no temperature gets 0, which makes every answer repeatable; one that names no `max_tokens` gets
`output_tokens`, because a model of this size may repeat itself until its context is full.

How to make this server call options (template.jinja does a part of it). The fields that a request must have:

    last message          options offered, choice     send
    ────────────────────  ──────────────────────────  ─────────────────────────────────────────────────────────────
    the user's            open ("auto" or unset)      tool_choice "required", parallel_tool_calls false
    an option's result    open                        tool_choice "none", the tools as before
    any                   required                    "required", false, chat_template_kwargs {"expects_call": true}
    any                   one, by name                as required, with that tool alone: the server ignores the name
    any                   none                        "none", chat_template_kwargs {"expects_call": false}

So a loop over calls ends after one call for each message of the user. "auto" on the user's turn is an error (500).
Arguments in the history have to be JSON objects: the server answers anything else with 500; send {} in its place.

Measured with SmolLM2-135M-Instruct.Q4_1 at temperature 0 under this rule, with one option offered, the same plain and
streamed, by `SABIR_LOCAL_ALL_QUESTIONS=1 pytest -s tests/local/test_calling.py -k one_option`:

    questions                                 calls    right arguments    answers that use the result
    48, used while writing the template       48       42                 48
    16, written afterwards                    16       12                 15

Two options offered: always a call, but the right one little more often than by chance (29 of 48).
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

from sabir_local import engine
from sabir_local.models import EMBEDDED, find_model, find_weights, in_words, template_name


class ServerNotStarted(CallError):
    """The embedded server could not be started with these weights."""


THREADS_VARIABLE = "SABIR_LOCAL_THREADS"
CONTEXT_TOKENS = 4096
OUTPUT_TOKENS = 512
START_SECONDS = 60.0

_STOP_SECONDS = 5.0
_logger = logging.getLogger("sabir.local")
_error_line = re.compile(rb"^\S+ E (?:\S+: +)?(?P<reason>.*\w.*)$", re.MULTILINE)


class LocalServer:
    """One model behind one port, started at first use. Threads may share it; a forked process starts its own.

    `weights`: a GGUF file; else `find_weights` finds one. `threads`: cores to use, else SABIR_LOCAL_THREADS, else 1.
    `context_tokens`: the window kept in memory, for prompt and answer together. `output_tokens`: the most an answer
    gets if the request sets no limit. `template`: the text of a jinja chat template in place of the usual one.
    `start_seconds`: how long loading may take. Raises SettingsInvalid for a number below 1.
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
                raise SettingsInvalid(f"{name} of a LocalServer is {number}; give at least 1")
        self._lock = Lock()
        self._child: _Child | None = None
        self._address = ""
        self.api_key = secrets.token_urlsafe(24)
        """The bearer token that every request must have."""

    def __repr__(self) -> str:
        return f"LocalServer(weights={self._weights!r}, threads={self._threads}, is_running={self.is_running})"

    @property
    def is_running(self) -> bool:
        """Whether a child process of this process serves now."""
        return self._child is not None and self._child.is_alive

    @property
    def address(self) -> str:
        """The server's URL without a path. Starts the server, again if it has ended; then the port changes.

        Raises WeightsMissing or ServerNotStarted, which say in one line why there is no server.
        """
        with self._lock:
            if not self.is_running:
                if self._child is not None and self._child.exit_code is not None:
                    _logger.warning("the embedded server stopped (%s); starting it again", self._child.exit_code)
                self._end_child()
                self._child, self._address = self._start()
            return self._address

    def stop(self) -> None:
        """Stop it; a second stop is harmless, and a later use starts it again."""
        with self._lock:
            self._end_child()

    def _end_child(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.stop()

    def _start(self) -> "tuple[_Child, str]":
        weights = find_weights(self._weights)
        _logger.info("loading %s, %s, from %s", weights.stem, in_words(weights.stat().st_size), weights.resolve())
        try:
            child = _Child(
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
            message = f"the embedded server needs a process of {sys.executable!r}: {error}"
            raise ServerNotStarted(message, provider="local") from error
        weakref.finalize(self, child.stop)  # also runs at exit
        try:
            return child, child.address(self._start_seconds)
        except BaseException as error:  # an interrupt too: nobody else knows of the child
            child.stop(seconds=0)
            if isinstance(error, _Silent):
                message = f"the embedded server did not start with {weights.name}: {error}"
                raise ServerNotStarted(message, provider="local") from None
            raise


class _Silent(Exception):
    """A child gave no address; the text is the reason, as the rest of a sentence."""


class _Child:
    """One child process: started, asked for its address, stopped. A forked process leaves it alone."""

    def __init__(self, order: engine.Order) -> None:
        self._owner = os.getpid()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (stop closes it)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-X", "utf8", engine.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=0,
            start_new_session=True,  # an interrupt key pressed in the terminal is not meant for it
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        self._line = b""
        self._reader = Thread(target=self._read_line, name="sabir-local-start", daemon=True)
        self._reader.start()
        assert self._process.stdin is not None  # PIPE was asked for
        self._input: IO[bytes] = self._process.stdin
        with suppress(BrokenPipeError):  # it ended at once; address() says why
            self._input.write(json.dumps(order).encode() + b"\n")

    @property
    def is_alive(self) -> bool:
        return self._owner == os.getpid() and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """As subprocess has it: negative for a signal; None while it lives, and in a forked process."""
        return self._process.poll() if self._owner == os.getpid() else None

    def address(self, seconds: float) -> str:
        """The address that the child announced; _Silent if it ended without one, or took longer than that."""
        self._reader.join(seconds)
        if self._reader.is_alive():
            raise _Silent(f"it was not ready after {seconds:g} s; give a longer start_seconds, or fewer threads")
        if not self._line:
            self._process.wait(_STOP_SECONDS)
            raise _Silent(f"{self._last_words()}; try other weights or a smaller context_tokens")
        return self._line.decode().strip()

    def stop(self, seconds: float = _STOP_SECONDS) -> None:
        """End it: close its input, and kill it after that many seconds. A second call is harmless."""
        self._input.close()
        self._errors.close()
        if self._owner != os.getpid():
            self._process.returncode = 0  # only the parent may wait for it
            return
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()

    def _read_line(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as output:
            self._line = output.readline()

    def _last_words(self) -> str:
        self._errors.seek(0)
        written = self._errors.read()
        reason = _error_line.search(written)
        lines = written.decode(errors="replace").strip().splitlines()
        if reason is not None:
            return reason["reason"].decode(errors="replace").strip()
        return lines[-1] if lines else f"it ended with exit code {self._process.returncode}"


def template_for(weights: Path) -> str:
    """This package's chat template for those weights; empty for weights that contain a good one."""
    own = template_name(weights.name)
    return files("sabir_local").joinpath(own).read_text("utf-8") if own else ""


def _threads_of_environment() -> int:
    text = os.environ.get(THREADS_VARIABLE, "1")
    if not text.isdecimal():
        raise SettingsInvalid(f"{THREADS_VARIABLE} is {text!r}; give a number of threads")
    return int(text)


_shared_lock = Lock()


def shared_server(model: str = EMBEDDED) -> LocalServer:
    """The one server for all adapters of this process that were given none and name that file's model."""
    weights = find_model(model)
    with _shared_lock:
        return _server_of(weights)


@cache
def _server_of(weights: Path) -> LocalServer:
    return LocalServer(weights)
