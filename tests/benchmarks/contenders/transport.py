"""An in-process transport of httpx2: it answers by itself, and keeps what reached it."""

import httpx2


class Transport(httpx2.MockTransport):
    """Answers in turn; after the last answer, with the first again."""

    def __init__(self, *answers: bytes) -> None:
        super().__init__(self.answer)
        self.body = b""
        self.begin(list(answers))

    def begin(self, answers: list[bytes]) -> None:
        """Answer with these from now on."""
        self.answers, self.count = answers, 0

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        """The next answer."""
        self.body = request.read()
        content = self.answers[self.count % len(self.answers)]
        self.count += 1
        return httpx2.Response(200, headers={"Content-Type": "application/json"}, content=content)
