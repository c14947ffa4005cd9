"""Writes the parts of the reference that come from the code: `python -m tests.docs.generate`.

<!-- generated: name -->
…                          replaced by what SECTIONS[name] gives
<!-- end of name -->

and the code that they quote from the project's files (see includes.py). The picture of a terminal is drawn anew too.
"""

import re
from collections.abc import Callable, Mapping

from tests.docs import (
    commands,
    conformance,
    errors,
    gateways,
    hand_over,
    packages,
    providers,
    roles,
    sizes,
    stored,
    surface,
    terminal,
)
from tests.docs.includes import with_includes
from tests.docs.pages import pages

SECTIONS: Mapping[str, Callable[[], str]] = {
    "surface": surface.surface,
    "surface errors": surface.surface_errors,
    "surface words": surface.surface_words,
    "protocols": surface.protocols,
    "values": surface.value_list,
    "hooks": surface.hooks,
    "error tree": errors.error_tree,
    "error table": errors.error_table,
    "error map": errors.error_map,
    "settings": providers.settings_table,
    "vendor settings": providers.vendor_table,
    "providers": providers.providers_table,
    "media": providers.media_list,
    "hints": providers.hint_list,
    "quirks": providers.quirk_table,
    "hand over": hand_over.matrix,
    "commands": commands.command_list,
    "slash words": commands.slash_words,
    "exit codes": commands.exit_codes,
    "conformance cases": conformance.case_list,
    "questions": conformance.question_table,
    "capability names": conformance.capability_names,
    "capabilities": providers.capability_table,
    "operations": providers.operation_table,
    "provider sizes": sizes.size_table,
    "expected failures": providers.expected_failures,
    "a suite for the copy": conformance.suite_file,
    "a failure in words": conformance.failure,
    "the end of a run": conformance.summary,
    **packages.PACKAGE_SECTIONS,
    **roles.SECTIONS,
    **gateways.SECTIONS,
    **stored.SECTIONS,
    **packages.ACTOR_SECTIONS,
    **surface.AUTHOR_SECTIONS,
}

_SECTION = re.compile(r"<!-- generated: (?P<name>[\w. ]+) -->\n(?P<body>.*?)<!-- end of (?P=name) -->", re.DOTALL)


def names_in(text: str) -> list[str]:
    return [found["name"] for found in _SECTION.finditer(text)]


def filled(text: str) -> str:
    """A page's text with every section as the code has it now."""
    return _SECTION.sub(_fill, text)


def _fill(found: re.Match[str]) -> str:
    name = found["name"]
    return f"<!-- generated: {name} -->\n{SECTIONS[name]()}\n<!-- end of {name} -->"


def main() -> None:
    for page in pages():
        current = with_includes(filled(page.text))
        if current != page.text:
            page.path.write_text(current, "utf-8")
            print(f"wrote {page}")
    drawn = terminal.picture()
    if drawn != terminal.PICTURE.read_text("utf-8"):
        terminal.PICTURE.write_text(drawn, "utf-8")
        print(f"wrote {terminal.PICTURE.name}")


if __name__ == "__main__":
    main()
