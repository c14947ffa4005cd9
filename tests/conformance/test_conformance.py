"""The kit, on every dialect of this repository."""

from tests.conformance.suites import SUITES
from tests.conformance.suites import AnthropicMessages as TestAnthropicMessages
from tests.conformance.suites import Echo as TestEcho
from tests.conformance.suites import GoogleGenerateContent as TestGoogleGenerateContent
from tests.conformance.suites import Local as TestLocal
from tests.conformance.suites import OpenAIChat as TestOpenAIChat
from tests.conformance.suites import OpenAIResponses as TestOpenAIResponses

HELD = (TestAnthropicMessages, TestEcho, TestGoogleGenerateContent, TestLocal, TestOpenAIChat, TestOpenAIResponses)


def test_every_suite_is_held() -> None:
    """One that is not imported here is held by nobody."""
    assert set(HELD) == set(SUITES.values())
