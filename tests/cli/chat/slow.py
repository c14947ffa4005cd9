"""The command with a provider `slow`, which says one word after another until it is stopped."""

import json
import sys
import time
from collections.abc import Iterator

import sabir
from sabir.authoring import Access, InProcessConnection, InProcessResponse, WireRequest
from sabir_cli.main import main
from sabir_echo.plugin import Echo


class Slow(Echo):
    """Echo's dialect; each word of the answer takes a while."""

    name = "slow"

    def connect(self, access: Access) -> InProcessConnection:
        """A connection to this process."""
        return InProcessConnection(serve)


def serve(request: WireRequest) -> InProcessResponse:
    return InProcessResponse(200, words())


def words() -> Iterator[bytes]:
    for number in range(600):
        yield f"data: {json.dumps({'text': f'word{number} '})}\n\n".encode()
        time.sleep(0.1)
    yield f"data: {json.dumps({'finish': 'done', 'usage': {'input_tokens': 1, 'output_tokens': 1}})}\n\n".encode()


if __name__ == "__main__":
    sabir.register("slow", Slow())
    sys.exit(main())
