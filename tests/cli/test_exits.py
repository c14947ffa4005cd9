"""Exit codes: one table for the process, the help page and the README."""

import re
from pathlib import Path

import pytest
import sabir
from cyclopts import CycloptsError
from pydantic import TypeAdapter, ValidationError
from sabir_cli import exits
from sabir_cli.exits import ROWS, Exit, exit_of, explain

README = Path(__file__).parents[2] / "plugins" / "cli" / "README.md"


def validation_error() -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(int).validate_python("x")
    return caught.value


def subclasses(kind: type[BaseException]) -> set[type[BaseException]]:
    return {kind}.union(*(subclasses(each) for each in kind.__subclasses__()))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (sabir.errors.HistoryInvalid("x"), 2),
        (sabir.errors.OptionInvalid("x"), 2),
        (exits.UsageError("x"), 2),
        (CycloptsError("x"), 2),
        (validation_error(), 2),
        (FileNotFoundError(2, "gone", "f"), 2),
        (sabir.RenderingRefused("x", []), 1),
        (sabir.ProviderMissing("x"), 3),
        (sabir.CredentialsMissing("x"), 4),
        (sabir.errors.ResponseInvalid("x"), 4),
        (RuntimeError("x"), 70),
        (KeyboardInterrupt(), 130),
        (BrokenPipeError(), 141),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
def test_an_error_ends_in_the_code_of_its_nearest_class(error: BaseException, code: int) -> None:
    """A closed pipe is an OSError too, and a missing provider a SabirError: the nearer class decides."""
    assert exit_of(error) == code


def test_every_error_of_the_library_has_a_code_other_than_that_of_a_bug() -> None:
    """A new error class without a row would be reported as a fault of the program."""

    def of(kind: type[BaseException]) -> BaseException:
        """One of that class, unmade; a failure of several is a group, which is never empty."""
        return kind.__new__(kind, *(("several", [ValueError()]) if issubclass(kind, BaseExceptionGroup) else ()))

    unplaced = [kind.__name__ for kind in subclasses(sabir.SabirError) if exit_of(of(kind)) is Exit.BUG]

    assert unplaced == []


def test_every_code_has_one_row() -> None:
    """The table is the documentation: a code that it lacks is documented nowhere."""
    assert sorted(row.code for row in ROWS) == sorted(Exit)


def test_the_readme_holds_the_table() -> None:
    """What users read is what the program does."""
    documented = re.findall(r"^\| (\d+) \| (.+) \|$", README.read_text("utf-8"), re.MULTILINE)

    assert [(int(code), meaning) for code, meaning in documented] == sorted((row.code, row.meaning) for row in ROWS)


def test_the_help_text_holds_the_table() -> None:
    """`sabir --help` says what a script may rely on."""
    assert all(re.search(rf"^ +{row.code.value}  {re.escape(row.meaning)}$", exits.help_text(), re.M) for row in ROWS)


def test_an_operating_system_error_names_its_file() -> None:
    """The offender first, and no errno."""
    assert explain(PermissionError(13, "Permission denied", "talk.json")) == "'talk.json': Permission denied"


def test_a_fault_names_its_class_and_how_to_see_more() -> None:
    """A user who reports it should not have to be asked for the traceback."""
    assert explain(RuntimeError("boom")) == "unexpected RuntimeError: boom; set SABIR_DEBUG=1 to see where"


def test_a_validation_error_is_one_line() -> None:
    """Pydantic's own text has three lines and a web address."""
    assert explain(validation_error()).startswith("int: ")
    assert "\n" not in explain(validation_error())
