"""The two extras of this package, whose libraries are imported at the first use of a name that needs them.

pip install "sabir-runtime[durable]"        sabir_runtime.durable        DBOS, SQLAlchemy, psycopg
pip install "sabir-runtime[distributed]"    sabir_runtime.distributed    nats-py

from sabir_runtime.durable import DurableRunner ──▶ ExtraMissing, if the extra is not installed
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from sabir_runtime.failures import RuntimeFault


class ExtraMissing(RuntimeFault, ImportError):
    """A name was imported that needs an extra which is not installed."""


@contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Import modules of an extra within this context; raises ExtraMissing if one of its libraries is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        remedy = f'pip install "sabir-runtime[{extra}]"'
        missing = f"sabir_runtime.{extra} needs {error.name}, which is not installed; {remedy}"
        raise ExtraMissing(missing) from None


def lazy_names(package: str, module_of: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of an extra's package: it imports the module of a public name at the first use."""
    extra = package.rpartition(".")[2]

    def find(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with needs_extra(extra):
            return getattr(import_module(f"{package}.{module_of[name]}"), name)

    return find
