"""The embedded model server: llama.cpp in this process, on a loopback port that the system chooses.

    LocalServer() ── address, api_key ──▶ started once, at first use        stop(), or the end of the process

A key made at random keeps other users of the machine out. One thread by default: on shared cores more are slower.
"""

import atexit
import os
import secrets
from importlib.resources import files
from pathlib import Path
from threading import Lock
from typing import Any

from sabir.errors import SettingsInvalid

from sabir_local.errors import ServerNotStarted
from sabir_local.weights import find_weights

THREADS_VARIABLE = "SABIR_LOCAL_THREADS"
CONTEXT_TOKENS = 4096
_QUIET = -1


class LocalServer:
    """One model behind one port. `context_tokens` is the window that is kept in memory, at most the model's own."""

    def __init__(
        self, weights: str | Path | None = None, *, threads: int | None = None, context_tokens: int = CONTEXT_TOKENS
    ) -> None:
        self._weights = weights
        self._threads = threads if threads is not None else _threads_of_environment()
        if self._threads < 1 or context_tokens < 1:
            raise SettingsInvalid("a LocalServer needs at least one thread and one context token")
        self._context_tokens = context_tokens
        self._lock = Lock()
        self._server: Any = None
        self.api_key = secrets.token_urlsafe(24)
        """What a request must bring as its bearer token."""

    def __repr__(self) -> str:
        return f"LocalServer(weights={self._weights!r}, threads={self._threads}, running={self._server is not None})"

    @property
    def address(self) -> str:
        """The server's URL without a path; starts it. WeightsMissing or ServerNotStarted say why it cannot."""
        with self._lock:
            if self._server is None:
                self._server = self._start()
                atexit.register(self.stop)
            return str(self._server.listening_address)

    def stop(self) -> None:
        """Stop it; twice is harmless, and a later use starts it anew."""
        with self._lock:
            server, self._server = self._server, None
        if server is not None:
            atexit.unregister(self.stop)
            del server

    def _start(self) -> Any:
        path = find_weights(self._weights)
        try:
            import xllamacpp

            return xllamacpp.Server(self._parameters(xllamacpp, path))
        except Exception as error:
            message = f"the embedded server did not start with {path.name}: {error}; try other weights or less context"
            raise ServerNotStarted(message, provider="local") from error

    def _parameters(self, xllamacpp: Any, path: Path) -> Any:
        parameters = xllamacpp.CommonParams()
        parameters.model.path = str(path)
        parameters.model_alias = {"smollm2"}
        parameters.port = 0
        parameters.api_keys = [self.api_key]
        parameters.cpuparams.n_threads = self._threads
        parameters.cpuparams_batch.n_threads = self._threads
        parameters.n_ctx = self._context_tokens
        parameters.n_parallel = 1
        parameters.use_jinja = True
        parameters.chat_template = files("sabir_local").joinpath("template.jinja").read_text("utf-8")
        parameters.verbosity = _QUIET
        parameters.ui = False
        return parameters


def _threads_of_environment() -> int:
    text = os.environ.get(THREADS_VARIABLE, "1")
    if not text.isdecimal():
        raise SettingsInvalid(f"{THREADS_VARIABLE} is {text!r}; give a number of threads")
    return int(text)


_shared: LocalServer | None = None
_shared_lock = Lock()


def shared_server() -> LocalServer:
    """The server of this process's adapters, made at the first call."""
    global _shared
    with _shared_lock:
        if _shared is None:
            _shared = LocalServer()
        return _shared
