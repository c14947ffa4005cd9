"""The context that a worker serves, made by what its user gave: a class derived from BaseContext, as a rule."""

import inspect
from collections.abc import Callable

from sabir_runtime import BaseContext, InMemoryRunner, RuntimeFault

from sabir_distributed.work import WorkerRunner

REMEDY = "give it a class derived from BaseContext, whose __init__ needs a runner alone"


def make_context(context: Callable[[InMemoryRunner], BaseContext]) -> BaseContext:
    """The context, made with a runner of this process; RuntimeFault where it is none, or needs more than a runner."""
    runner = WorkerRunner()
    called = getattr(context, "__qualname__", type(context).__name__)
    if isinstance(context, type) and not issubclass(context, BaseContext):
        raise RuntimeFault(f"a worker serves contexts, not the class {called!r}; {REMEDY}")
    if inspect.iscoroutinefunction(context):
        raise RuntimeFault(f"a worker serves contexts, not the async function {called!r}; {REMEDY}")
    try:
        inspect.signature(context).bind(runner)
    except TypeError as error:
        raise RuntimeFault(f"a worker cannot make {called!r} with a runner alone: {error}; {REMEDY}") from None
    except ValueError:
        pass  # what is built in may show no signature
    made: object = context(runner)
    if not isinstance(made, BaseContext):
        raise RuntimeFault(f"a worker serves contexts, not a {type(made).__name__}; {REMEDY}")
    return made
