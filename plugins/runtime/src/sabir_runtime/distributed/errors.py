"""The errors of DistributedRunner and Worker.

RuntimeFault
├── AccessInvalid      a URL, the given credentials or a certificate cannot be used (ValueError)
├── NoServer           no NATS server can be reached, or the connection is lost for good (ConnectionError)
│   └── AccessRefused  the server rejects the credentials, or forbids a subject (PermissionError)
├── NoWorkers          no worker serves the policy (LookupError)
├── WorkerLost         workers failed several times to finish a request
├── RequestTimedOut    no answer within the caller's or worker's time limit (TimeoutError)
├── RunnerClosed       the runner was closed during a call
├── PayloadTooLarge    a message exceeds the server's size limit (ValueError)
└── EnvelopeInvalid    a message is not in the format that this version reads (ValueError)

If the policy itself fails at a worker, the caller receives a `sabir_runtime.PolicyFailed`.
"""

from sabir_runtime import RuntimeFault


class NoServer(RuntimeFault, ConnectionError):
    """Raised if no NATS server can be reached within `patience` seconds, or if the connection is lost for good.

    Start a server, or give the URL of another server. Also a ConnectionError.
    """


class AccessInvalid(RuntimeFault, ValueError):
    """Raised if a NATS URL, a file with credentials or a certificate cannot be used. The message contains no secrets.

    Also raised if credentials are incomplete or of several kinds. Also a ValueError.
    """


class AccessRefused(NoServer, PermissionError):
    """Raised if the NATS server rejects the login, TLS fails, or the user's permissions lack a required subject.

    Also a PermissionError.
    """


class NoWorkers(RuntimeFault, LookupError):
    """Raised if no worker serves the policy of the context, and none started within `patience` seconds.

    Start one with `sabir worker`. Also a LookupError.
    """


class WorkerLost(RuntimeFault):
    """Raised if workers failed `CallSettings.attempts` times in all to finish a request.

    Each time, a worker stopped reporting, was shut down, or did not reply at all. It may be the same worker. The policy
    may have run once, several times or not at all.
    """


class RequestTimedOut(RuntimeFault, TimeoutError):
    """Raised if a call has no answer within `CallSettings.timeout`, or takes longer than `WorkerSettings.longest`.

    The policy may have run completely, in part or not at all. After `timeout` the caller tells the workers to stop the
    policy, after `longest` the worker stops it. Also raised if the call was never sent, because `in_flight` other calls
    were in progress. Also a TimeoutError.
    """


class RunnerClosed(RuntimeFault):
    """Raised to the caller of a call in progress when the runner is closed.

    The message says whether a worker may have run the policy.
    """


class PayloadTooLarge(RuntimeFault, ValueError):
    """Raised if a request or an answer is larger, after compression, than the NATS server's `max_payload`.

    Increase `max_payload` in the server's configuration, or send media as URLs. Also a ValueError.
    """


class EnvelopeInvalid(RuntimeFault, ValueError):
    """Raised if a message between caller and worker is damaged, too large, or of another schema number.

    Also raised if a request came to the subject of another policy, has an id that another caller used, or contains a
    value that is not JSON, and for an unexpected error of a worker. Also a ValueError.
    """
