"""`sabir new-plugin`: the package of a provider, whole and tested before its first line is changed.

    NAME                     template/             a worked provider on a made-up wire, and a stand-in for its service
    NAME --compatible URL    compatible_template/  one row of data for sabir-openai

Both templates are packages for a vendor called Acme. The new package is a template under another name.
"""

import keyword
import os
import re
import sys
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import sabir
from cyclopts import Parameter
from rich.text import Text
from sabir.authoring import Access

from sabir_cli.exits import Exit
from sabir_cli.inputs import JSONFlag
from sabir_cli.output import Output, UsageError

WORKED, COMPATIBLE = "template", "compatible_template"
URL = "https://api.acme.example/v1"
"""The address that the templates hold."""
_NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_ACME = re.compile(r"sabir-acme|acme(?=\.example)|ACME|Acme|acme")
_PLAIN_URL = re.compile(r"[!#-&(-;=?-\[\]-~]+")
"""Printable ASCII without quotes, backslashes and angle brackets: the characters allowed in a string of any of the
files."""

NEXT: Mapping[str, Mapping[str, str]] = {
    WORKED: {
        "INSTALL -e .": "makes it a provider of sabir",
        "PYTHON -m pytest": "the conformance kit: it passes",
        "src/sabir_acme/dialect.py": "begin here; each file says how",
        "PYTHON -m pytest --sabir-record": "asks the service anew",
    },
    COMPATIBLE: {
        "INSTALL -e .": "makes it a provider of sabir",
        "src/sabir_acme/plugin.py": "where the endpoint deviates",
        "tests/test_acme.py": "a model, and what it can carry",
        "PYTHON -m pytest --sabir-record": "first: asks it, with your key",
        "PYTHON -m pytest": "then: the conformance kit, offline",
    },
}
"""Template → the next steps with the new package, and why; INSTALL and PYTHON stand for this environment's own."""
KIT = "sabir-testing"


def new_plugin(
    name: Annotated[str, Parameter(help="The provider's name, as in NAME:model; lower-case letters, digits and _.")],
    /,
    *,
    into: Annotated[Path, Parameter(help="The folder in which sabir-NAME is written.")] = Path(),
    compatible: Annotated[
        str | None,
        Parameter(help="URL of an endpoint that speaks OpenAI's Chat Completions: its provider is a row of data."),
    ] = None,
    as_json: JSONFlag = False,
) -> int:
    """Write the package of a provider of your own: sabir-NAME, with its tests.

    sabir new-plugin zenith

    sabir new-plugin zenith --compatible https://api.zenith.example/v1
    """
    output = Output(machine=as_json)
    template = WORKED if compatible is None else COMPATIBLE
    found = dict(read(files("sabir_cli").joinpath(template)))
    check_name(name, found)
    url = None if compatible is None else check_url(name, compatible)
    folder = into / f"sabir-{dashed(name)}"
    if folder.exists():
        raise UsageError(f"{str(folder)!r} is there already; remove it, or name another place with --into")
    for path, text in found.items():
        target = folder / renamed(path, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(renamed(text, name, url), "utf-8", newline="\n")
    output.show(Text(next_steps(folder, name, template), no_wrap=True, overflow="ignore"))
    if as_json:
        output.document({"name": name, "folder": str(folder), "files": sorted(renamed(path, name) for path in found)})
    return Exit.OK


def next_steps(folder: Path, name: str, template: str) -> str:
    """The next steps, a line each: as they are typed in this environment, which has sabir and is activated first."""
    is_own = sys.prefix != sys.base_prefix
    python = "python" if is_own else Path(sys.executable).name
    install = f"{python} -m pip install" if find_spec("pip") else "uv pip install"
    kit = "" if find_spec(KIT.replace("-", "_")) else f" {KIT}"

    def typed(what: str) -> str:
        return renamed(what, name).replace("INSTALL -e .", f"{install} -e .{kit}").replace("PYTHON", python)

    rows = [(typed(what), renamed(why, name)) for what, why in NEXT[template].items()]
    width = max(len(what) for what, _ in rows)
    activate = [f"  . {_shorter(_activation(), folder)}"] if is_own and not _is_active() else []
    steps = [f"  {what:<{width}}  {why}" for what, why in rows]
    return "\n".join([f"wrote {folder}; next:", f"  cd {folder}", *activate, *steps])


def _is_active() -> bool:
    """Whether the user's shell has this environment activated; `uv run` activates it for its own child alone."""
    return os.environ.get("VIRTUAL_ENV") == sys.prefix and "UV_RUN_RECURSION_DEPTH" not in os.environ


def _activation() -> Path:
    return Path(sys.prefix) / ("Scripts" if os.name == "nt" else "bin") / "activate"


def _shorter(path: Path, start: Path) -> str:
    """A path as it is typed in that folder: from there, or from the root, whichever is shorter."""
    return min(os.path.relpath(path, start), str(path), key=len)


def read(template: Traversable, within: str = "") -> Iterator[tuple[str, str]]:
    """Every file of a template by its path; files left there by tools and interpreters are skipped."""
    for each in template.iterdir():
        if each.name == "__pycache__" or (each.name.startswith(".") and each.name != ".github"):
            continue
        if each.is_dir():
            yield from read(each, f"{within}{each.name}/")
        else:
            yield f"{within}{each.name}", each.read_text("utf-8")


def dashed(name: str) -> str:
    """The name as distributions and hosts have it."""
    return name.replace("_", "-")


def class_of(name: str) -> str:
    """The name as classes have it."""
    return "".join(map(str.capitalize, name.split("_")))


def renamed(text: str, name: str, url: str | None = None) -> str:
    """A text or a path of a template, for a provider of that name at that address."""
    forms = {"ACME": name.upper(), "Acme": class_of(name), "acme": name, "sabir-acme": f"sabir-{dashed(name)}"}

    def form(found: re.Match[str]) -> str:
        is_host = found.string.startswith(".example", found.end())
        return dashed(name) if is_host else forms[found[0]]

    return (url or _ACME.sub(form, URL)).join(_ACME.sub(form, piece) for piece in text.split(URL))


def check_name(name: str, template: Mapping[str, str]) -> None:
    """Raise UsageError for a name that no provider can have, that is taken, or that the package uses otherwise."""
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        near = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
        remedy = f"try {near!r}" if _NAME.fullmatch(near) and near != name else "try another"
        raise UsageError(f"{name!r} can name no provider: expected lower-case letters, digits and _; {remedy}")
    if name in {status.name for status in sabir.providers()}:
        raise UsageError(f"{name!r} is the name of an installed provider; choose another (see `sabir providers`)")
    if find_spec(f"sabir_{name}") is not None:
        raise UsageError(f"{name!r} is taken: a package sabir_{name} is installed; choose another name")
    words = {word for path, text in template.items() if path.endswith(".py") for word in re.findall(r"\w+", text)}
    if class_of(name) in words - {"Acme"}:
        raise UsageError(f"{name!r} would give a class {class_of(name)}, which the package has already; choose another")


def check_url(name: str, url: str) -> str:
    """The endpoint as the row holds it; SettingsInvalid or UsageError for what no row may hold."""
    endpoint = Access(base_url=url).read_endpoint(name, url)
    if endpoint != url.rstrip("/") or not _PLAIN_URL.fullmatch(endpoint):
        raise UsageError(f"--compatible takes an address alone, without user, query and quotes: {endpoint!r} would do")
    return endpoint
