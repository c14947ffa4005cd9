"""The error tables of Anthropic and of the clouds that sell its models. The first rule that matches decides.

    an error response, or an exception of the SDK's HTTP client ──▶ ERRORS ──▶ CallError
    an exception while the SDK looks for cloud credentials ──▶ CREDENTIAL_RULES ──▶ CallError; nothing was sent

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
"""Error class → the API's types of errors, in lower case, that mean this class."""
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
"""Request parameter, by its name in errors of the API → the neutral setting that is sent in it, for remedies."""
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


class CredentialRule(NamedTuple):
    """A CallError for exceptions that the SDK raises while it looks for cloud credentials.

    The rule applies if `pattern` matches a part of "module.class: text" of the exception, such as
    `botocore.exceptions.NoRegionError: …`. `message` is the error's text after the provider's name. With `adds_text`,
    the exception's text follows.
    """

    pattern: str
    kind: type[errors.CallError]
    message: str
    adds_text: bool = False


_AWS = "configure AWS credentials (aws configure, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY)"
_AWS_KEYS = "{'aws_access_key': …, 'aws_secret_key': …}"
_GOOGLE = (
    "run gcloud auth application-default login, set GOOGLE_APPLICATION_CREDENTIALS, or pass api_key={'access_token': …}"
)
CREDENTIAL_RULES = (
    CredentialRule(
        r"(Import|ModuleNotFound)Error: .*\b(boto3|botocore)\b",
        errors.CredentialsMissing,
        "signs requests with boto3, which is not installed; pip install 'anthropic[bedrock]', or set "
        "AWS_BEARER_TOKEN_BEDROCK",
    ),
    CredentialRule(
        r"No AWS region",
        errors.CredentialsMissing,
        "has no region; set the variable AWS_REGION, or pass api_key={'aws_region': …}",
    ),
    CredentialRule(
        r"Cannot specify both `api_key` and AWS credentials",
        errors.CredentialsMissing,
        "has both a key and AWS credentials, and the SDK accepts only one; unset AWS_BEARER_TOKEN_BEDROCK, or remove "
        "the AWS credentials",
    ),
    CredentialRule(
        r"Could not resolve AWS credentials",
        errors.CredentialsMissing,
        f"has no AWS credentials; {_AWS}, set AWS_BEARER_TOKEN_BEDROCK, or pass api_key={_AWS_KEYS}",
    ),
    CredentialRule(r"^botocore\.", errors.CredentialsMissing, f"has no usable AWS credentials; {_AWS}", adds_text=True),
    CredentialRule(
        r"missing required dependency `google-auth`",
        errors.CredentialsMissing,
        "finds credentials with google-auth, which is not installed; pip install 'anthropic[vertex]', or pass "
        "api_key={'access_token': …}",
    ),
    CredentialRule(
        r"No project_id was given",
        errors.CredentialsMissing,
        "has no project; set the variable ANTHROPIC_VERTEX_PROJECT_ID, or pass api_key={'project_id': …}",
    ),
    CredentialRule(
        r"^google\.auth\.exceptions\.DefaultCredentialsError",
        errors.CredentialsMissing,
        f"has no Google credentials; {_GOOGLE}",
        adds_text=True,
    ),
    CredentialRule(
        r"^google\.auth\.exceptions\.TransportError",
        errors.ConnectionFailed,
        "got no token, because Google's token service cannot be reached; check the network",
        adds_text=True,
    ),
    CredentialRule(
        r"^google\.auth\.", errors.AuthenticationFailed, f"got no token from Google; {_GOOGLE}", adds_text=True
    ),
)
"""Rules for exceptions that the SDK raises while it looks for cloud credentials. The first match counts.

The patterns match the texts of anthropic 2.14. Tests raise each exception with the installed SDK.
"""


def read_credential_error(error: Exception, provider: str) -> errors.CallError | None:
    """Return the CallError for an exception that the SDK raised while it looked for cloud credentials. None for any
    other exception.
    """
    text = f"{type(error).__module__}.{type(error).__qualname__}: {error}"
    rule = next((rule for rule in CREDENTIAL_RULES if re.search(rule.pattern, text)), None)
    if rule is None:
        return None
    reason = f" ({one_line(error, 160)})" if rule.adds_text else ""
    return rule.kind(f"{provider} {rule.message}{reason}", provider=provider)
