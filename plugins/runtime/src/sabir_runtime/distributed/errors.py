"""The errors between a caller and the workers.

RuntimeFault
├── AccessInvalid      a URL, a file of credentials or a certificate that cannot be used (ValueError)
├── NoServer           no NATS server at the address, or it is permanently lost (ConnectionError)
│   └── AccessRefused  the server refuses this program, or a subject to it (PermissionError)
├── NoWorkers          nobody answers for the policy (LookupError)
├── WorkerLost         every worker with the request fell silent
├── RequestTimedOut    no answer within the time of a call (TimeoutError)
├── RunnerClosed       the runner was closed while a call was under way
├── PayloadTooLarge    more bytes than the server carries in one message (ValueError)
└── EnvelopeInvalid    not an envelope that this version reads, or it does not fit the other side (ValueError)

A policy's own error at its worker becomes a `sabir_runtime.PolicyFailed`.
"""

from sabir_runtime import RuntimeFault


class NoServer(RuntimeFault, ConnectionError):
    """There is no NATS server, it refuses the connection, or it was away for longer than the patience."""


class AccessInvalid(RuntimeFault, ValueError):
    """A URL, credentials or a certificate cannot be used; nothing of a secret is repeated."""


class AccessRefused(NoServer, PermissionError):
    """The NATS server refuses this program, or its permissions exclude a subject that it needs."""


class NoWorkers(RuntimeFault, LookupError):
    """No worker answers for this policy of this context, and none came within the patience."""


class WorkerLost(RuntimeFault):
    """The workers that were given a request fell silent, one after the other; it may have run, also more than once."""


class RequestTimedOut(RuntimeFault, TimeoutError):
    """A call had no answer within its timeout; its worker was told to stop."""


class RunnerClosed(RuntimeFault):
    """The runner was closed while a call was under way; it says whether a worker may have run it."""


class PayloadTooLarge(RuntimeFault, ValueError):
    """A request or an answer is larger, compressed, than what the server carries in one message."""


class EnvelopeInvalid(RuntimeFault, ValueError):
    """A received message is not an envelope, or one of another version or for another context."""
