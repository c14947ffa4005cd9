"""The names under which the runs of a context are stored.

    class Support(BaseContext):
        stored_as = "support"                the name in new runs: the column `sabir_runs.context`, and the queue
        stored_before = ("Helpdesk",)        runs with these names are performed too

Without `stored_as` the name is the class's `__qualname__`, without the module: a module is `__main__` in a script and
has another name when the script is imported. Subclasses do not inherit the names.
"""

import sys

from sabir_runtime.contexts import BaseContext, context_names
from sabir_runtime.durable.errors import DurableFault


def stored_names(context: BaseContext) -> tuple[str, ...]:
    """Return the name under which new runs of a context are stored, followed by its earlier names."""
    return context_names(type(context)).all


def check_one_class(known: BaseContext | None, context: BaseContext) -> None:
    """Raise DurableFault if `known`, a context with the same stored name as `context`, is of another class.

    Two classes with one qualified name in one file count as the same class, defined twice.
    """
    if known is not None and _file_and_name(type(known)) != _file_and_name(type(context)):
        classes = " and ".join(f"{kind.__module__}.{kind.__qualname__}" for kind in (type(known), type(context)))
        remedy = "rename one of them, or give one of them another stored_as"
        raise DurableFault(f"{classes} have the same stored name, so they would perform each other's runs; {remedy}")


def _file_and_name(kind: type) -> tuple[str, str]:
    """Return the file and the name of a class."""
    return getattr(sys.modules.get(kind.__module__), "__file__", None) or kind.__module__, kind.__qualname__
