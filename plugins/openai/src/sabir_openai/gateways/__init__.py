"""The rows of compatible endpoints: a file each in this folder, under its provider's name."""

from functools import cache
from importlib.resources import files

from sabir.authoring import Row


@cache
def row_of(name: str) -> Row | None:
    """Return the row of a compatible endpoint, from the file of its name; None if there is none."""
    file = files("sabir_openai").joinpath("gateways", f"{name}.toml")
    return Row.read_all(file.read_text("utf-8"))[name] if name.isidentifier() and file.is_file() else None


def gateways() -> dict[str, Row]:
    """Return the rows of all compatible endpoints by name."""
    paths = files("sabir_openai").joinpath("gateways").iterdir()
    rows = (row_of(path.name.removesuffix(".toml")) for path in paths)
    return {row.name: row for row in rows if row is not None}
