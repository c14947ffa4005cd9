"""The two extras of this package. Their libraries are imported when a name of the extra is first used.

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
    """Raised by an import from an extra of this package that is not installed. Run the pip command in the message."""


@contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Import modules of an extra in the `with` block. Raises ExtraMissing if one of their libraries is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        remedy = f'pip install "sabir-runtime[{extra}]"'
        missing = f"sabir_runtime.{extra} needs {error.name}, which is not installed; {remedy}"
        raise ExtraMissing(missing) from None


def lazy_names(package: str, module_of: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a module `__getattr__` that imports the module of a public name when the name is first used."""
    extra = package.rpartition(".")[2]

    def find(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with needs_extra(extra):
            return getattr(import_module(f"{package}.{module_of[name]}"), name)

    return find
