"""The key of a request: equal keys mean that the provider would get the same request.

target, path, body, headers  +  how names are translated back  +  the policy of the reply   ──SHA-256──▶   key
"""

import hashlib
import json

from sabir import Rendering


def request_key(rendering: Rendering, speaks_as: str) -> str:
    """Return the SHA-256 of a request as 64 hexadecimal digits.

    The endpoint and extra headers count, and the API key does not: it is not part of a rendering.
    """
    target = rendering.target
    head = [
        *(target.provider, target.dialect, target.model, target.endpoint, rendering.path, speaks_as),
        *(str(rendering.headers_json), str(rendering.option_names_json), str(rendering.argument_names_json)),
    ]
    digest = hashlib.sha256(json.dumps(head).encode())
    digest.update(b"\n")
    digest.update(rendering.body_bytes)
    return digest.hexdigest()
