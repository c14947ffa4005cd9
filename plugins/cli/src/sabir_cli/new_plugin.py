"""`sabir new-plugin`: write a working package of a provider, with tests.

    NAME                     template/             a complete provider of an invented API, and a fake of its service
    NAME --compatible URL    compatible_template/  one row of data for sabir-openai

Both templates are packages for a vendor called Acme. The new package is a copy with the provider's name in place of
Acme.
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
"""The URL of the API in the templates."""
_NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_ACME = re.compile(r"sabir-acme|acme(?=\.example)|ACME|Acme|acme")
_PLAIN_URL = re.compile(r"[!#-&(-;=?-\[\]-~]+")
"""Pattern of texts of printable ASCII without quotes, backslashes and angle brackets, which are safe in all files of a
template.
"""

NEXT: Mapping[str, Mapping[str, str]] = {
    WORKED: {
        "INSTALL -e .": "installs it as a provider of sabir",
        "PYTHON -m pytest": "runs the conformance tests: they pass",
        "src/sabir_acme/dialect.py": "begin here; each file explains itself",
        "PYTHON -m pytest --sabir-record": "records the service's answers again",
    },
    COMPATIBLE: {
        "INSTALL -e .": "installs it as a provider of sabir",
        "src/sabir_acme/plugin.py": "set where the API differs from OpenAI's",
        "tests/test_acme.py": "name a model and its capabilities",
        "PYTHON -m pytest --sabir-record": "records answers, with your API key",
        "PYTHON -m pytest": "then tests offline with these answers",
    },
}
"""Template → the next steps for the user: command or file → its purpose. INSTALL and PYTHON are replaced by
commands.
"""
KIT = "sabir-testing"
"""The conformance kit. It depends on pytest, so the steps name it if it is not installed."""


def new_plugin(
    name: Annotated[str, Parameter(help="The provider's name, as in NAME:model; lower-case letters, digits and _.")],
    /,
    *,
    into: Annotated[Path, Parameter(help="The folder in which the folder sabir-NAME is created.")] = Path(),
    compatible: Annotated[
        str | None,
        Parameter(help="URL of an API that is compatible with OpenAI's Chat Completions; the package is then short."),
    ] = None,
    as_json: JSONFlag = False,
) -> int:
    """Create a Python package sabir-NAME for a new provider, with tests.

    sabir new-plugin zenith

    sabir new-plugin zenith --compatible https://api.zenith.example/v1
    """
    output = Output(machine=as_json)
    template = WORKED if compatible is None else COMPATIBLE
    texts = dict(template_files(files("sabir_cli").joinpath(template)))
    check_name(name, texts)
    endpoint = None if compatible is None else check_url(name, compatible)
    folder = into / f"sabir-{with_dashes(name)}"
    if folder.exists():
        raise UsageError(f"{str(folder)!r} exists already; remove it, or choose another folder with --into")
    for path, text in texts.items():
        target = folder / replace_acme(path, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(replace_acme(text, name, endpoint), "utf-8", newline="\n")
    output.show(Text(next_steps(folder, name, template), no_wrap=True, overflow="ignore"))
    if as_json:
        paths = sorted(replace_acme(path, name) for path in texts)
        output.document({"name": name, "folder": str(folder), "files": paths})
    return Exit.OK


def next_steps(folder: Path, name: str, template: str) -> str:
    """Return the text that names the new folder and the next steps, one command or file per line, for the environment
    in which sabir is installed.
    """
    is_virtual = sys.prefix != sys.base_prefix
    python = "python" if is_virtual else Path(sys.executable).name
    install = f"{python} -m pip install" if find_spec("pip") else "uv pip install"
    kit = "" if find_spec(KIT.replace("-", "_")) else f" {KIT}"

    def as_typed(step: str) -> str:
        return replace_acme(step, name).replace("INSTALL -e .", f"{install} -e .{kit}").replace("PYTHON", python)

    def purpose_of(step: str, purpose: str) -> str:
        return f"{purpose}, and the tests' {KIT}, which has pytest" if kit and "INSTALL" in step else purpose

    steps_of = NEXT[template].items()
    rows = [(as_typed(step), replace_acme(purpose_of(step, purpose), name)) for step, purpose in steps_of]
    width = max(len(step) for step, _ in rows)
    script = Path(sys.prefix) / ("Scripts" if os.name == "nt" else "bin") / "activate"
    activate = [f"  . {_shorter(script, folder)}"] if is_virtual and not _is_active() else []
    steps = [f"  {step:<{width}}  {purpose}" for step, purpose in rows]
    return "\n".join([f"wrote {folder}; next:", f"  cd {folder}", *activate, *steps])


def _is_active() -> bool:
    """Return whether this environment is active in the user's shell. `uv run` activates it only for its child
    process.
    """
    return os.environ.get("VIRTUAL_ENV") == sys.prefix and "UV_RUN_RECURSION_DEPTH" not in os.environ


def _shorter(path: Path, start: Path) -> str:
    """Return a path relative to `start`, or unchanged if that is shorter."""
    return min(os.path.relpath(path, start), str(path), key=len)


def template_files(template: Traversable, folder: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path and the text of every file in `template`. The paths begin with `folder`.

    Caches are left out, and hidden files and folders except `.github`.
    """
    for entry in template.iterdir():
        if entry.name == "__pycache__" or (entry.name.startswith(".") and entry.name != ".github"):
            continue
        if entry.is_dir():
            yield from template_files(entry, f"{folder}{entry.name}/")
        else:
            yield f"{folder}{entry.name}", entry.read_text("utf-8")


def with_dashes(name: str) -> str:
    """Return the name with dashes in place of underscores, as in names of distributions and hosts."""
    return name.replace("_", "-")


def class_of(name: str) -> str:
    """Return the name in the style of class names: "MyCloud" for "my_cloud"."""
    return "".join(map(str.capitalize, name.split("_")))


def replace_acme(text: str, name: str, url: str | None = None) -> str:
    """Return a text or a path of a template with the provider's name in place of Acme, and `url` in place of URL.
    Without `url`, the URL gets the provider's name.
    """
    forms = {"ACME": name.upper(), "Acme": class_of(name), "acme": name, "sabir-acme": f"sabir-{with_dashes(name)}"}

    def form(match: re.Match[str]) -> str:
        is_host = match.string.startswith(".example", match.end())
        return with_dashes(name) if is_host else forms[match[0]]

    return (url or _ACME.sub(form, URL)).join(_ACME.sub(form, piece) for piece in text.split(URL))


def check_name(name: str, template: Mapping[str, str]) -> None:
    """Check a provider's name. Raises UsageError for an invalid name, for the name of an installed provider or package,
    and for a name whose class name `template` (path → text) uses already.
    """
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        near = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
        remedy = f"try {near!r}" if _NAME.fullmatch(near) and near != name else "choose another"
        raise UsageError(f"{name!r} cannot be a provider's name; use lower-case letters, digits and _; {remedy}")
    if name in {status.name for status in sabir.providers()}:
        raise UsageError(f"a provider {name!r} is installed already (see `sabir providers`); choose another name")
    if find_spec(f"sabir_{name}") is not None:
        raise UsageError(f"a package sabir_{name} is installed already; choose another name than {name!r}")
    words = {word for path, text in template.items() if path.endswith(".py") for word in re.findall(r"\w+", text)}
    if class_of(name) in words - {"Acme"}:
        raise UsageError(
            f"the name {name!r} needs a class {class_of(name)}, which the package uses already; choose another name"
        )


def check_url(name: str, url: str) -> str:
    """Return the URL of the endpoint without a slash at its end. Raises SettingsInvalid for an invalid URL, and
    UsageError for a URL with a user, a query, or characters that are not safe in Python code.
    """
    endpoint = Access(base_url=url).read_endpoint(name, url)
    if endpoint != url.rstrip("/") or not _PLAIN_URL.fullmatch(endpoint):
        raise UsageError(f"--compatible needs a URL without user, query and quotes; try {endpoint!r}")
    return endpoint
