"""The program of the child process: one model server, until the parent closes the pipe.

    standard input   one line of JSON (Order)   …then nothing; its end means stop
    standard output  one line: the server's address, once it answers
    standard error   llama.cpp's error messages

A process of its own because the server is built while the interpreter's lock is held: in the user's process that
blocks every thread, every event loop and the interrupt key while the weights load. It is run by its path and
imports nothing of sabir, so that it starts fast; the key is sent over the pipe, since other users can read arguments.
"""

import json
import os
import sys
from typing import Any, TypedDict

ERRORS_ONLY = 1
PROMPT_CACHE_MIB = 256
"""Size of the prompt cache for alternating conversations; llama.cpp's own default is 8 GiB."""

AGAINST_LOOPS = {"dry_multiplier": 1.0, "dry_allowed_length": 8, "dry_penalty_last_n": 128}
"""Makes repeats of more than eight tokens less and less likely: else one question in sixty never closes its call.
A penalty on single tokens (`repeat_penalty`) keeps the model from copying arguments and results."""


class Order(TypedDict):
    """The parent's order. `import_path` is the parent's own; an empty `template` means the template of the weights."""

    import_path: list[str]
    weights: str
    model: str
    api_key: str
    threads: int
    context_tokens: int
    output_tokens: int
    template: str


def parameters(xllamacpp: Any, order: Order) -> Any:
    """Return llama.cpp's parameters. Both thread counts are set, because prompts would otherwise use every core."""
    wanted = xllamacpp.CommonParams()
    wanted.model.path = order["weights"]
    wanted.model_alias = {order["model"]}  # otherwise replies and errors contain the file's absolute path
    wanted.api_keys = [order["api_key"]]
    wanted.port = 0
    wanted.cpuparams.n_threads = order["threads"]
    wanted.cpuparams_batch.n_threads = order["threads"]
    wanted.n_ctx = order["context_tokens"]
    wanted.n_predict = order["output_tokens"]
    wanted.n_parallel = 1
    wanted.cache_ram_mib = PROMPT_CACHE_MIB
    wanted.sampling.temp = 0.0
    for name, value in AGAINST_LOOPS.items():
        setattr(wanted.sampling, name, value)
    wanted.use_jinja = True
    wanted.chat_template = order["template"]
    wanted.verbosity = ERRORS_ONLY
    wanted.endpoint_slots = False
    wanted.ui = False
    return wanted


def main() -> None:
    """Start the server, print its address, wait for the end of the input."""
    order: Order = json.loads(sys.stdin.buffer.readline())
    sys.path[:] = order["import_path"]
    import xllamacpp

    try:
        server = xllamacpp.Server(parameters(xllamacpp, order))
    except Exception:
        os._exit(1)  # llama.cpp has written the reason; a traceback would hide it
    print(server.listening_address, flush=True)
    sys.stdin.buffer.read()
    os._exit(0)  # at once, without waiting for running requests


if __name__ == "__main__":
    main()
