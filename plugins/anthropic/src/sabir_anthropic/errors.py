"""The error tables of Anthropic and of the clouds that sell its models. The first rule that matches decides.

    an error answer, or an exception of the SDK's HTTP client ──▶ ERRORS ──▶ CallError
    an exception of the search for cloud credentials, before anything is sent ──▶ FAULTS ──▶ CallError

Types: https://platform.claude.com/docs/en/api/errors, and the exceptions of Bedrock.
"""

import re
from typing import NamedTuple

from sabir import errors
from sabir.authoring import ErrorRule, ErrorTable, one_line

_TYPES = {
    errors.InvalidRequest: "invalid_request_error validationexception",
    errors.AuthenticationFailed: "authentication_error",
    errors.QuotaExceeded: "billing_error servicequotaexceededexception",
    errors.PermissionDenied: "permission_error accessdeniedexception",
    errors.ModelNotFound: "not_found_error resourcenotfoundexception",
    errors.RequestTooLarge: "request_too_large",
    errors.RateLimited: "rate_limit_error throttlingexception",
    errors.CallTimedOut: "timeout_error modeltimeoutexception",
    errors.ServerFailed: "api_error internalserverexception modelstreamerrorexception",
    errors.Overloaded: "overloaded_error",
    errors.Unavailable: "serviceunavailableexception",
}
SETTINGS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "stop_sequences": "stop",
    "effort": "reasoning_effort",
    "output_config.effort": "reasoning_effort",
    "thinking": "reasoning_effort",
    "tool_choice": "option_choice",
    "output_format": "response_format",
    "output_config.format": "response_format",
}
"""Request parameter, as errors of the API name it → the neutral setting that is sent in it, for the remedy."""
ERRORS = ErrorTable(
    rules=(
        ErrorRule.by_words(
            (r"(prompt|input) is too long|exceed\w* (the )?(context|model's maximum)", errors.ContextTooLong),
            (r"context (window|size)", errors.ContextTooLong),
            (r"credit balance is too low|(usage|spend\w*) limits?\b", errors.QuotaExceeded),
            (r"content filter\w* policy", errors.ContentFiltered),
            at=(None, 400, 403, 429),  # for other statuses the type is more exact; None: an error in a stream
        ),
        ErrorRule.by_codes({code: kind for kind, codes in _TYPES.items() for code in codes.split()}),
        ErrorRule.by_words((r"overloaded", errors.Overloaded), at=(503,)),
    ),
    modules=("anthropic",),
    settings=SETTINGS,
    raised=(
        ("APIError", None, ""),
        ("AnthropicError", errors.InvalidRequest, "was not called, because the SDK refused the request"),
    ),
)


class Fault(NamedTuple):
    """The error for an exception of the search for cloud credentials. `words` are the message after the provider's
    name.

    `pattern` is searched in "module.class: text" of the exception, as in `botocore.exceptions.NoRegionError: …`.
    `is_shown` adds the exception's own text to the message.
    """

    pattern: str
    kind: type[errors.CallError]
    words: str
    is_shown: bool = False


_AWS = "configure AWS credentials (aws configure, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY)"
_AWS_KEYS = "{'aws_access_key': …, 'aws_secret_key': …}"
_GOOGLE = (
    "run gcloud auth application-default login, set GOOGLE_APPLICATION_CREDENTIALS, or pass api_key={'access_token': …}"
)
FAULTS = (
    Fault(
        r"(Import|ModuleNotFound)Error: .*\b(boto3|botocore)\b",
        errors.CredentialsMissing,
        "signs requests with boto3, which is not installed; pip install 'anthropic[bedrock]', or set "
        "AWS_BEARER_TOKEN_BEDROCK",
    ),
    Fault(
        r"No AWS region",
        errors.CredentialsMissing,
        "has no region; set the variable AWS_REGION, or pass api_key={'aws_region': …}",
    ),
    Fault(
        r"Cannot specify both `api_key` and AWS credentials",
        errors.CredentialsMissing,
        "has both a key and AWS credentials, and the SDK accepts only one; unset AWS_BEARER_TOKEN_BEDROCK, or remove "
        "the AWS credentials",
    ),
    Fault(
        r"Could not resolve AWS credentials",
        errors.CredentialsMissing,
        f"has no AWS credentials; {_AWS}, set AWS_BEARER_TOKEN_BEDROCK, or pass api_key={_AWS_KEYS}",
    ),
    Fault(r"^botocore\.", errors.CredentialsMissing, f"has no usable AWS credentials; {_AWS}", is_shown=True),
    Fault(
        r"missing required dependency `google-auth`",
        errors.CredentialsMissing,
        "finds credentials with google-auth, which is not installed; pip install 'anthropic[vertex]', or pass "
        "api_key={'access_token': …}",
    ),
    Fault(
        r"No project_id was given",
        errors.CredentialsMissing,
        "has no project; set the variable ANTHROPIC_VERTEX_PROJECT_ID, or pass api_key={'project_id': …}",
    ),
    Fault(
        r"^google\.auth\.exceptions\.DefaultCredentialsError",
        errors.CredentialsMissing,
        f"has no Google credentials; {_GOOGLE}",
        is_shown=True,
    ),
    Fault(
        r"^google\.auth\.exceptions\.TransportError",
        errors.ConnectionFailed,
        "got no token, because Google's token service cannot be reached; check the network",
        is_shown=True,
    ),
    Fault(r"^google\.auth\.", errors.AuthenticationFailed, f"got no token from Google; {_GOOGLE}", is_shown=True),
)
"""Which error replaces an exception of the search for cloud credentials. The first match counts.

The patterns match the texts of anthropic 2.14; tests raise each exception with the installed SDK.
"""


def read_fault(error: Exception, provider: str) -> errors.CallError | None:
    """Return the CallError for an exception of the search for cloud credentials; None for any other exception."""
    text = f"{type(error).__module__}.{type(error).__qualname__}: {error}"
    fault = next((each for each in FAULTS if re.search(each.pattern, text)), None)
    if fault is None:
        return None
    reason = f" ({one_line(error, 160)})" if fault.is_shown else ""
    return fault.kind(f"{provider} {fault.words}{reason}", provider=provider)
