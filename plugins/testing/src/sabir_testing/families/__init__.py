"""The two classes from which conformance suites inherit, composed of families of test cases.

ProviderConformance     for a provider that is reached over HTTP: tested with recordings
OfflineConformance      for a provider on this machine: tested live, without transport tests
"""

from sabir_testing.families.batches import BatchCases
from sabir_testing.families.changed_replies import ChangedReplyCases
from sabir_testing.families.complete_requests import CompleteRequestCases
from sabir_testing.families.connection_errors import ConnectionErrorCases
from sabir_testing.families.contract import ContractCases
from sabir_testing.families.documented_words import DocumentedErrorCases, DocumentedReplyCases
from sabir_testing.families.embeddings import EmbeddingCases
from sabir_testing.families.errors import ErrorCases
from sabir_testing.families.framings import FramingCases
from sabir_testing.families.further_replies import FurtherReplyCases
from sabir_testing.families.further_streams import FurtherStreamCases
from sabir_testing.families.handover import HandoverCases
from sabir_testing.families.laws import LawCases
from sabir_testing.families.lossless_history import LosslessHistoryCases
from sabir_testing.families.lossless_replies import LosslessReplyCases, LosslessStreamCases
from sabir_testing.families.lossless_requests import LosslessRequestCases
from sabir_testing.families.replies import ReplyCases
from sabir_testing.families.requests import RequestCases
from sabir_testing.families.stored_meanings import StoredMeaningCases
from sabir_testing.families.stored_requests import StoredRequestCases
from sabir_testing.families.streams import StreamCases
from sabir_testing.families.transport import TransportCases


class _CommonCases(
    ContractCases,
    BatchCases,
    RequestCases,
    CompleteRequestCases,
    LosslessRequestCases,
    LawCases,
    StoredRequestCases,
    StoredMeaningCases,
    LosslessHistoryCases,
    ReplyCases,
    ChangedReplyCases,
    FurtherReplyCases,
    DocumentedReplyCases,
    LosslessReplyCases,
    StreamCases,
    LosslessStreamCases,
    FurtherStreamCases,
    FramingCases,
    ErrorCases,
    DocumentedErrorCases,
    HandoverCases,
    EmbeddingCases,
):
    """The families of both kinds of suites."""


class OfflineConformance(_CommonCases):
    """Base class of a conformance suite for a provider on this machine: every test except those of the HTTP transport.
    The tests ask the questions while they run.

    Set `adapter`; other attributes are optional. Run the suite with pytest.
    """

    asks_live = True


class ProviderConformance(_CommonCases, TransportCases, ConnectionErrorCases):
    """Base class of a conformance suite for a provider that is reached over HTTP: every test of the kit. Answers come
    from recordings.

    Set `adapter` and `cassettes`; other attributes are optional. Run the suite with pytest, and with `--sabir-record`
    to record the answers of the real service.
    """
