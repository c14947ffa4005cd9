"""The program of the child process: one model server, until the parent closes the pipe.

    standard input   one line of JSON (ServerOptions); the end of the input stops the server
    standard output  one line: the server's address, when the server accepts requests
    standard error   llama.cpp's error messages

The server runs in a separate process, because loading the weights holds the interpreter's lock: in the user's process
it would block every thread, every event loop and Ctrl-C. The file is run by its path and imports nothing of sabir, so
that it starts fast. The key is sent over the pipe, because other users of the machine can read arguments of processes.
"""

import json
import os
import sys
from typing import Any, TypedDict

ERRORS_ONLY = 1
"""The level at which llama.cpp writes only error messages."""
PROMPT_CACHE_MIB = 256
"""Size of the cache for the prompts of alternating conversations, in MiB. llama.cpp's own default is 8 GiB."""

AGAINST_LOOPS = {"dry_multiplier": 1.0, "dry_allowed_length": 8, "dry_penalty_last_n": 128}
"""Sampling parameters that make repetitions of more than eight tokens less likely. Without them, the model never ends
its call for one question in sixty. A penalty on single tokens (`repeat_penalty`) is not used, because it prevents the
model from copying arguments and results."""


class ServerOptions(TypedDict):
    """The line that the parent process sends. `import_path` is the parent's `sys.path`. An empty `template` means the
    chat template in the weights.
    """

    import_path: list[str]
    weights: str
    model: str
    api_key: str
    threads: int
    context_tokens: int
    output_tokens: int
    template: str


def parameters(xllamacpp: Any, options: ServerOptions) -> Any:
    """Return llama.cpp's parameters for the options. Both numbers of threads are set, because reading prompts would
    otherwise use every core.
    """
    params = xllamacpp.CommonParams()
    params.model.path = options["weights"]
    params.model_alias = {options["model"]}  # otherwise replies and errors contain the file's absolute path
    params.api_keys = [options["api_key"]]
    params.port = 0
    params.cpuparams.n_threads = options["threads"]
    params.cpuparams_batch.n_threads = options["threads"]
    params.n_ctx = options["context_tokens"]
    params.n_predict = options["output_tokens"]
    params.n_parallel = 1
    params.cache_ram_mib = PROMPT_CACHE_MIB
    params.sampling.temp = 0.0
    for name, value in AGAINST_LOOPS.items():
        setattr(params.sampling, name, value)
    params.use_jinja = True
    params.chat_template = options["template"]
    params.verbosity = ERRORS_ONLY
    params.endpoint_slots = False
    params.ui = False
    return params


def main() -> None:
    """Start the server, print its address, wait for the end of the input, and end the process. Exit with 1 if the
    server cannot start.
    """
    options: ServerOptions = json.loads(sys.stdin.buffer.readline())
    sys.path[:] = options["import_path"]
    import xllamacpp

    try:
        server = xllamacpp.Server(parameters(xllamacpp, options))
    except Exception:
        os._exit(1)  # llama.cpp has written the reason; a traceback would hide it
    print(server.listening_address, flush=True)
    sys.stdin.buffer.read()
    os._exit(0)  # at once, without waiting for running requests


if __name__ == "__main__":
    main()
