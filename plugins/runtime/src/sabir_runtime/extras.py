"""The extras `durable` and `distributed`. Their libraries are imported when a name that needs them is first used.

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
    """Raised if a name of `sabir_runtime.durable` or `.distributed` needs a library that is not installed.

    The commands `sabir runs` and `sabir worker` raise it, too. Run the pip command in the message. Also an ImportError.
    """


@contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Raise ExtraMissing if the `with` block imports a module that is not installed. `extra` is the extra's name."""
    try:
        yield
    except ModuleNotFoundError as error:
        remedy = f'pip install "sabir-runtime[{extra}]"'
        missing = f"sabir_runtime.{extra} needs {error.name}, which is not installed; {remedy}"
        raise ExtraMissing(missing) from None


def lazy_names(package: str, module_of: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a function for a package's `__getattr__`, which imports the module of a public name at the first use.

    `module_of` is public name → name of its module in the package. The function raises ExtraMissing if
    the module needs a library that is not installed, and AttributeError for any other name.
    """
    extra = package.rpartition(".")[2]

    def find(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with needs_extra(extra):
            return getattr(import_module(f"{package}.{module_of[name]}"), name)

    return find
