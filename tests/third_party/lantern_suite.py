"""The suite of lantern, imported from its folder instead of an installed package."""

import importlib.util
import sys
from functools import cache
from pathlib import Path

import sabir
from sabir_testing import ProviderConformance

FOLDER = Path(__file__).parent / "sabir-lantern"


@cache
def lantern_suite() -> type[ProviderConformance]:
    """Return the suite, for the provider `lantern`, which is registered."""
    sys.path.append(str(FOLDER / "src"))
    from sabir_lantern.plugin import lantern

    sabir.register("lantern", lantern)
    spec = importlib.util.spec_from_file_location("lantern_suite_of_its_author", FOLDER / "tests" / "test_lantern.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    suite: type[ProviderConformance] = module.TestLantern
    return suite
