"""Acme against sabir's conformance kit: each case that fails says which rule is broken, by what, and how.

    ACME_API_KEY=… pytest --sabir-record        asks the endpoint, and keeps its answers in tests/cassettes
    pytest                                      offline, against these

Change: MODEL, and `capabilities`, to what you know of the endpoint. What cannot hold there goes to `xfail`, with the
reason.
"""

from collections.abc import Mapping
from pathlib import Path

import sabir
from sabir_testing import REFUSED, ProviderConformance

MODEL = "acme:small"
"""A model that the endpoint offers."""


class TestAcme(ProviderConformance):
    """What is left out of `capabilities` is held to one rule only: that nothing is lost in silence.

    Chat Completions tells no thoughts; an endpoint that does all the same needs the quirk for it.
    """

    adapter = sabir.adapter(MODEL, api_key="test")
    cassettes = Path(__file__).parent / "cassettes"
    capabilities = {"reasoning": REFUSED}
    sdk = "openai"
    variables = ("ACME_BASE_URL",)
    refused_body = {"temperature": "warm"}
    xfail = {
        f"test_a_{how}_failure_is_its_error[{what}]": "the endpoint fails so only when it is busy"
        for how in ("recorded", "streamed")
        for what in ("rate_limited", "overloaded")
    }

    def provenance(self, question: str) -> Mapping[str, str]:
        """Who answered: it stands at the head of each recording."""
        return {"server": "Acme's own service", "version": "not told"}
