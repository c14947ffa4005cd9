"""What the transport's cases stand on: an environment in which no variable of the machine decides."""

import pytest
import sabir
from sabir_testing.families.wire import bare_names
from sabir_testing.kit.suite import Subject, Suite

from tests.testing.harness import Breakage, registered

DECISIVE = (
    "ACME_API_KEY", "HTTP_PROXY", "https_proxy", "ALL_PROXY", "no_proxy", "ACME_BASE_URL", "OTHER_SDK_URL", "TENANT",
)  # fmt: skip
HARMLESS = ("PATH", "ACMES", "TENANTS", "MY_ACME_KEY")


def test_variables_that_may_decide_what_a_provider_does_are_bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its keys, all that begins with its name or its SDK's, what the suite names, and proxies; nothing else."""
    for name in (*DECISIVE, *HARMLESS):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with registered(Breakage()) as name:
        said = {"adapter": sabir.adapter(f"{name}:small"), "sdk": "other.client", "variables": ("TENANT",)}
        found = bare_names(Subject(type("OfAcme", (Suite,), said)()))

    assert {*DECISIVE} <= {*found}
    assert {*HARMLESS}.isdisjoint(found)
