"""Raw httpx2: ready bytes go to the stub by a plain client, and the answer's bytes are read; nothing is decoded."""

from collections.abc import Callable
from typing import Any

import httpx2

from tests.benchmarks import work
from tests.benchmarks.contenders.doing import SENT, timed
from tests.benchmarks.contenders.hand import wire_of
from tests.benchmarks.contenders.hand_messages import messages_of
from tests.benchmarks.work import Given

REQUIREMENTS = ("pydantic>=2.14", "orjson>=3", "httpx2>=2")

_TOLD = ("lang", "package-version", "os", "arch", "runtime", "runtime-version", "async", "retry-count", "read-timeout")
HEADERS = {
    "Accept": "application/json", "Content-Type": "application/json", "Authorization": "Bearer none",
    "User-Agent": "OpenAI/Python 3.54.0", **{f"X-Stainless-{name}": "python" for name in _TOLD},
}  # fmt: skip
"""As many as an SDK sends: the request is as long."""


def send(given: Given) -> Callable[[], Any]:
    """Posts, one after the other."""
    body = wire_of(given).request(messages_of(given))
    client, url = httpx2.Client(headers=HEADERS), given.url + work.PATHS[given.wire]

    def run() -> dict[str, Any]:
        took, last = timed(lambda _: client.post(url, content=body).content, range(SENT))
        return {"text": last.decode(), "figures": dict.fromkeys(("beyond", "sending", "posting"), took)}

    run.units = SENT  # type: ignore[attr-defined]
    return run


TASKS = {"send": send}
