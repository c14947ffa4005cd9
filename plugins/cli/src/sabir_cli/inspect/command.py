"""`sabir inspect`: show a conversation and its renderings on a local, read-only web page.

PATH ──load──▶ Inspection ──▶ a server on 127.0.0.1, until Ctrl-C       --html FILE ──▶ one file, readable by its owner
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import sabir
from cyclopts import Parameter

from sabir_cli.exits import Exit
from sabir_cli.inputs import STDIN_TOO, OptionFlags, load_options
from sabir_cli.output import Output, UsageError, refuse_replacing

if TYPE_CHECKING:
    from sabir_cli.inspect.comparison import RequestedComparison
    from sabir_cli.inspect.inspection import Inspection

INSTALL = 'pip install "sabir-cli[inspect]"'


def inspect(
    path: Annotated[
        str | None,
        STDIN_TOO,
        Parameter(
            help="A history, store or recording, or a saved conversation's name; - reads standard input. "
            "Default: the last saved conversation."
        ),
    ] = None,
    /,
    *,
    name: Annotated[str | None, Parameter(help="The conversation in a store with several.")] = None,
    model: Annotated[
        list[str] | None,
        Parameter(name=["-m", "--model"], negative="", help="provider[.dialect]:model to render for; repeatable."),
    ] = None,
    option: OptionFlags = None,
    html: Annotated[Path | None, Parameter(help="Write one static file, and start no server.")] = None,
    redact: Annotated[
        bool, Parameter(negative="", help="Replace texts, arguments and media; keep the structure.")
    ] = False,
    force: Annotated[bool, Parameter(negative="", help="Overwrite the file --html.")] = False,
    no_open: Annotated[bool, Parameter(negative="", help="Print the address, and do not open the browser.")] = False,
) -> int:
    """Show a conversation and its renderings in the browser. Nothing is sent to a vendor.

    The page is served on this machine only, until Ctrl-C. For example:

    sabir inspect talk.json -m openai:gpt-5 -m google:gemini-3-pro

    sabir inspect chats.db --name 12 --html report.html --redact
    """
    output = Output()
    if force and html is None:
        raise UsageError("--force overwrites the file --html; add --html FILE, or remove --force")
    if html is not None:
        refuse_replacing(f"--html {str(html)!r}", html, may_replace=force, remedy=", or add --force")
    else:
        require_extra()
    from sabir_cli.inspect.cache_proof import with_cache_proof
    from sabir_cli.inspect.comparison import RequestedComparison
    from sabir_cli.inspect.loading import load_inspection

    inspection = with_cache_proof(with_options(load_inspection(path, name), load_options(option)))
    if redact:
        from sabir_cli.inspect.redaction import redact as redact_inspection

        inspection = redact_inspection(inspection)
    requested = RequestedComparison(tuple(model or ()))
    if html is not None:
        _write_file(html, inspection, requested)
        output.note(f"wrote  {html}")
    else:
        _run_server(inspection, requested, output, opens=not no_open)
    return Exit.OK


def require_extra() -> None:
    """Raise UsageError, which says what to install, if the libraries of the extra are missing."""
    from importlib.util import find_spec

    missing = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    if missing:
        raise UsageError(f"the page needs {' and '.join(missing)}; {INSTALL}, or write a file with --html FILE")


def with_options(inspection: "Inspection", options: tuple[sabir.Option, ...]) -> "Inspection":
    """Return the conversation with further options, which replace those of the same name."""
    from dataclasses import replace

    names = {option.name for option in options}
    return replace(inspection, options=(*(each for each in inspection.options if each.name not in names), *options))


def _write_file(path: Path, inspection: "Inspection", requested: "RequestedComparison") -> None:
    """Write the static page to a file that only its owner can read. Raises UsageError if that fails."""
    from sabir.authoring import create_private_file, replace_file

    from sabir_cli.inspect.documents import static_document

    text = static_document(inspection, requested)
    try:
        create_private_file(path)
        os.chmod(path, 0o600)
        replace_file(path.resolve(), text)
    except OSError as error:
        raise UsageError(f"--html {str(path)!r} cannot be written: {error.strerror}; choose another file") from None


def _run_server(inspection: "Inspection", requested: "RequestedComparison", output: Output, *, opens: bool) -> None:
    """Serve the page until Ctrl-C, and print its address."""
    import secrets
    import webbrowser

    from sabir_cli.inspect.server import HOST, build_app, build_server, open_socket

    with open_socket() as listening:
        port, token = listening.getsockname()[1], secrets.token_urlsafe(24)
        view = "renderings" if requested.models else "conversation"
        address = f"http://{HOST}:{port}/{token}/{view}"
        output.data(f"{address}\n")
        output.note("anyone who has this address can read the conversation on this machine; Ctrl-C stops the server")
        if opens:
            webbrowser.open(address)
        try:
            build_server(build_app(inspection, requested, token, port)).run(sockets=[listening])
        except KeyboardInterrupt:
            output.note("stopped")
