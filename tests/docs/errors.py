"""The reference of the errors: the tree as it is, with what each means and whether trying again may help."""

from collections.abc import Iterator

import sabir
from sabir.errors import CallError, SabirError

from tests.docs.sources import describe_class


def error_tree() -> str:
    """The tree, drawn from the classes."""
    return "```text\n" + "\n".join(_branch(SabirError, "")) + "\n```"


def error_table() -> str:
    """One row an error, in the tree's order."""
    return "\n".join(["| error | when | retryable |", "|---|---|---|", *map(_row, walk(SabirError))])


def children(error: type[SabirError]) -> list[type[SabirError]]:
    """The public errors right below one, in the order of their definition."""
    return [each for each in error.__subclasses__() if getattr(sabir, each.__name__, None) is each]


def walk(error: type[SabirError]) -> Iterator[type[SabirError]]:
    """An error and all below it."""
    yield error
    for child in children(error):
        yield from walk(child)


def _branch(error: type[SabirError], indent: str) -> Iterator[str]:
    mark = "  (retryable)" if issubclass(error, CallError) and error.retryable else ""
    yield f"{error.__name__}{mark}"
    below = children(error)
    for index, child in enumerate(below):
        is_last = index + 1 == len(below)
        first, *rest = _branch(child, indent)
        yield ("└── " if is_last else "├── ") + first
        yield from (("    " if is_last else "│   ") + line for line in rest)


def _row(error: type[SabirError]) -> str:
    return f"| `{error.__name__}` | {describe_class(error).summary} | {_retryable(error)} |"


def _retryable(error: type[SabirError]) -> str:
    if not issubclass(error, CallError):
        return ""
    return "yes" if error.retryable else "no"
