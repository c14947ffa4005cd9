"""An adapter for a wire that nobody here knew is small."""

from tests.docs.sizes import MOST_OF_A_STRANGERS, PROVIDERS, lines_of_logic


def test_each_provider_that_authors_read_fits_into_one_sitting() -> None:
    """At most 200 lines of logic each, tables and signatures aside; counted, and none of them empty."""
    counted = {name: sum(lines_of_logic(folder).values()) for name, (folder, _) in PROVIDERS.items()}

    assert {name: lines for name, lines in counted.items() if not 50 <= lines <= MOST_OF_A_STRANGERS} == {}


def test_a_statement_of_a_function_is_a_line_of_logic() -> None:
    """Docstrings, tables and imports are none."""
    assert set(lines_of_logic(PROVIDERS["sabir-echo"][0])) == {"__init__.py", "dialect.py", "plugin.py"}
    assert lines_of_logic(PROVIDERS["sabir-echo"][0])["__init__.py"] == 0
