"""A contender's process: makes tasks ready and runs them on command, timing itself.

    stdin   {"do": "prepare", "task": "render", "given": ["openai.chat", 100, "", 1]}      {"do": "round", "runs": 20}
    stdout  {"seconds": 0.004} | {"absent": "…"}                                           {"cpu": …, "wall": …}

One task at a time. Preparing runs it once and checks what came of it. Times are nanoseconds a unit; what a run uses
up is renewed outside them. The garbage collector stays on, as in any program.
"""

import gc
import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

from benchmarks.checks import differs, refused
from benchmarks.contenders import MODULES
from benchmarks.contenders.doing import Contender
from benchmarks.work import Given

Answer = dict[str, Any]
BEGUN_SMALL = ("call", "loop", "loopback", "send", "fresh", "stub_loop", "stream")
"""Tasks whose first run imports what sends."""


class Worker:
    def __init__(self, contender: str) -> None:
        module = importlib.import_module(f"benchmarks.contenders.{MODULES[contender]}")
        self.contender: Contender = module.CONTENDERS[contender]
        self.run: Callable[[], Any] = lambda: None
        self.value: Any = None
        self.begun: set[tuple[str, str]] = set()

    def prepare(self, task: str, given: list[Any]) -> Answer:
        """Make a task ready, run it once, and check the evidence."""
        self.close()
        self.run, self.value = lambda: None, None
        gc.collect()
        wanted = Given(*given)
        if task not in self.contender.tasks:
            return {"absent": ""}
        try:
            self.begin(task, wanted)
            self.run = self.contender.tasks[task](wanted)
        except ValueError:
            return {"absent": ""}
        cold = self.round(1)
        value = self.value
        evidence = self.contender.evidence.get(task, lambda given, found: found)(wanted, value)
        if wrong := differs(task, wanted, evidence):
            return {"absent": f"its work differs: {wrong}"}
        kept = {
            key: evidence[key]
            for key in ("held", "json", "turns", "bytes", "written")
            if isinstance(evidence, dict) and key in evidence
        }
        if count := refused(task, wanted, evidence):
            kept["refused"] = count
        return {"evidence": kept, "cold": cold}

    def begin(self, task: str, given: Given) -> None:
        """Do a little of a task, the first time on a wire: what is imported at the first call is imported by then."""
        if task in BEGUN_SMALL and (task, given.wire) not in self.begun:
            self.begun.add((task, given.wire))
            self.run = self.contender.tasks[task](given._replace(size=2))
            self.round(1)

    def round(self, runs: int) -> Answer:
        """So many runs, timed together where nothing is renewed between them, else each alone."""
        run, renew = self.run, getattr(self.run, "renew", None)
        units = getattr(run, "units", 1) * runs
        cpu = wall = 0
        begun = time.perf_counter()
        value: Any = None
        for count in [1] * runs if renew else [runs]:
            if renew:
                renew()
            begun_wall, begun_cpu = time.perf_counter_ns(), time.process_time_ns()
            for _ in range(count):
                value = run()
            cpu += time.process_time_ns() - begun_cpu
            wall += time.perf_counter_ns() - begun_wall
        self.value = value
        more = {key: value.get(key) for key in ("turns", "figures")} if isinstance(value, dict) else {}
        return {"cpu": cpu / units, "wall": wall / units, "elapsed": time.perf_counter() - begun, **more}

    def close(self) -> None:
        getattr(self.run, "close", lambda: None)()

    def imports(self, given: list[Any]) -> Answer:
        """What makes it ready, and what goes on to the first answer."""
        if self.contender.imports is None:
            return {"absent": ""}
        try:
            ready, answer = self.contender.imports(Given(*given))
        except ValueError:
            return {"absent": ""}
        return {"ready": ready, "answer": answer, "alone": self.contender.imported}

    def obey(self, command: Answer) -> Answer:
        """Do what a command says; what goes wrong is told, and ends nothing."""
        does: dict[str, Callable[..., Answer]] = {
            "prepare": self.prepare, "round": self.round, "imports": self.imports,
        }  # fmt: skip
        what = does[command.pop("do")]
        try:
            return what(**command)
        except Exception as error:
            return {"absent": f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"}


def main(contender: str, commands: TextIO, answers: TextIO) -> None:
    """Answer each line of commands with one line."""
    worker = Worker(contender)
    answers.write("{}\n")
    answers.flush()
    for line in commands:
        answers.write(json.dumps(worker.obey(json.loads(line))) + "\n")
        answers.flush()
    worker.close()


if __name__ == "__main__":
    own = os.fdopen(os.dup(1), "w")  # libraries that print do so to stderr
    os.dup2(2, 1)
    main(sys.argv[1], sys.stdin, own)
