"""The reference of capabilities: what each wire of this project is declared, and was seen, to carry.

tests/conformance/suites.py declares grades ──▶ the kit holds them against what it sees ──▶ the same grades, as a table

The third-party package's suite needs its SDK, which is none of this workspace's: its declaration is read, not imported.
"""

import ast
from collections.abc import Mapping

import sabir_testing
from sabir_testing import CAPABILITIES, UNKNOWN, Grade

from tests.conformance.suites import SUITES
from tests.docs.pages import ROOT

THIRD_PARTY = {"cohere.chat": ROOT / "tests" / "third_party" / "sabir-cohere" / "tests" / "test_cohere.py"}


def declared() -> Mapping[str, Mapping[str, Grade]]:
    """Dialect → capability → grade."""
    here = {name: suite.capabilities for name, suite in SUITES.items()}
    return here | {name: _read(path.read_text("utf-8")) for name, path in THIRD_PARTY.items()}


def _read(source: str) -> Mapping[str, Grade]:
    """The capabilities of a test file's suite, with the constants of its module that they name."""
    tree = ast.parse(source)
    suite = next(node for node in tree.body if isinstance(node, ast.ClassDef))
    [value] = [each.value for each in suite.body if isinstance(each, ast.AnnAssign) and _names(each, "capabilities")]
    constants = [node for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple)]
    known = {name: getattr(sabir_testing, name) for name in ("FULL", "DOWNGRADED", "REFUSED", "UNKNOWN")}
    exec(compile(ast.Module(constants, []), "constants", "exec"), known)
    assert value is not None
    found: Mapping[str, Grade] = eval(compile(ast.Expression(value), "capabilities", "eval"), known)
    return found


def _names(node: ast.AnnAssign, name: str) -> bool:
    return isinstance(node.target, ast.Name) and node.target.id == name


def capability_table() -> str:
    """One row a capability, one column a dialect."""
    columns = declared()
    head = [f"| capability | {' | '.join(f'`{name}`' for name in columns)} |", "|---|" + "---|" * len(columns)]
    rows = [
        f"| `{name}` | {' | '.join(str(grades.get(name, UNKNOWN)) for grades in columns.values())} |"
        for name in CAPABILITIES
    ]
    return "\n".join([*head, *rows])


def expected_failures() -> str:
    """The cases that a suite opts out of, with the reasons; or that there are none."""
    rows = [
        f"| `{name}` | `{case}` | {reason} |" for name, suite in SUITES.items() for case, reason in suite.xfail.items()
    ]
    return "\n".join(["| provider | case | why |", "|---|---|---|", *rows]) if rows else "None: every case holds."
