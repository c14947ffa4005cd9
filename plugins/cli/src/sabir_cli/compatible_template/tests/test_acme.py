"""Test Acme with sabir's conformance kit. A failing test names the broken rule and the reason.

    ACME_API_KEY=… pytest --sabir-record        sends requests to the endpoint, and records its answers
    pytest                                      offline, with the recorded answers in tests/cassettes

Change: MODEL, and `capabilities`, to what you know about the endpoint. Add tests that cannot pass with the endpoint to
`xfail`, each with the reason.
"""

from collections.abc import Mapping
from pathlib import Path

import sabir
from sabir_testing import REFUSED, ProviderConformance

MODEL = "acme:small"
"""A model of the endpoint."""


class TestAcme(ProviderConformance):
    """The conformance tests of Acme. `capabilities` says for each capability whether the endpoint has it: FULL,
    DOWNGRADED or REFUSED. For a capability that is not named there, the tests only check that each loss is reported.

    Chat Completions does not accept reasoning in requests, so "reasoning" is REFUSED. If the endpoint accepts its
    reasoning back, add the quirk `echoes_reasoning` and remove this entry.
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
        """Return facts about the server that answered. They are written at the beginning of each recording."""
        return {"server": "Acme's own service", "version": "not told"}
