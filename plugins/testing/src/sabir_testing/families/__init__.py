"""The cases of the kit by family, and the kit as an author takes it: one class to derive from.

ProviderConformance   for a provider that is reached over HTTP, through its SDK, tested against recordings
OfflineConformance    for a provider that answers on this machine: asked live, without a transport
"""

from sabir_testing.families.contract import ContractCases
from sabir_testing.families.errors import ErrorCases
from sabir_testing.families.handover import HandoverCases
from sabir_testing.families.laws import LawCases
from sabir_testing.families.replies import ReplyCases
from sabir_testing.families.requests import RequestCases
from sabir_testing.families.streams import StreamCases
from sabir_testing.families.transport import TransportCases


class OfflineConformance(ContractCases, RequestCases, LawCases, ReplyCases, StreamCases, ErrorCases, HandoverCases):
    """Every case except those of the transport; the questions are asked while the tests run."""

    asks_live = True


class ProviderConformance(
    ContractCases, RequestCases, LawCases, ReplyCases, StreamCases, ErrorCases, HandoverCases, TransportCases
):
    """Every case."""
