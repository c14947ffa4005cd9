"""The local server: read-only pages on 127.0.0.1, at an address that nobody can guess.

    GET /TOKEN/conversation?page=2          GET /TOKEN/renderings?model=…&strict=true          anything else: 404

The token is compared in constant time. The Host header must be the server's own address, because another website could
otherwise let its own name point to 127.0.0.1 and read the answers (DNS rebinding).
"""

import secrets
import socket
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from sabir_cli.facts import open_adapter
from sabir_cli.inspect.cards import pair_results
from sabir_cli.inspect.comparison import RequestedComparison
from sabir_cli.inspect.conversation_page import page_of
from sabir_cli.inspect.documents import conversation_document, renderings_document
from sabir_cli.inspect.inspection import Inspection
from sabir_cli.inspect.page import response_headers

HOST = "127.0.0.1"


def open_socket() -> socket.socket:
    """Return a socket that listens on a free port of 127.0.0.1."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.bind((HOST, 0))
    listening.listen(64)
    return listening


def build_app(inspection: Inspection, requested: RequestedComparison, token: str, port: int) -> ASGIApp:
    """Return the application. `requested` are the models and settings of the first visit to the renderings."""
    routes = [
        Route("/{token}/", _only(token, _redirect_home)),
        Route("/{token}/conversation", _only(token, _conversation_endpoint(inspection))),
        Route("/{token}/renderings", _only(token, _renderings_endpoint(inspection, requested))),
    ]
    return _GuardedApp(Starlette(routes=routes), f"{HOST}:{port}")


def build_server(app: ASGIApp) -> uvicorn.Server:
    """Return the server. Its log has no addresses, because they contain the token."""
    config = uvicorn.Config(app, log_level="error", access_log=False, lifespan="off", server_header=False, ws="none")
    return uvicorn.Server(config)


class _GuardedApp:
    """Refuses other hosts and methods than GET, and adds the security headers to every response."""

    def __init__(self, app: ASGIApp, host: str) -> None:
        self._app = app
        self._host = host.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        hosts = [content for name, content in scope["headers"] if name == b"host"]
        app: ASGIApp = self._app
        if hosts != [self._host]:
            app = PlainTextResponse("This server answers only requests for its own address.\n", 421)
        elif scope["method"] != "GET":
            app = PlainTextResponse("This server is read-only.\n", 405, {"Allow": "GET"})

        async def send_guarded(message: dict[str, object]) -> None:
            if message["type"] == "http.response.start":
                headers = message.get("headers") or ()
                extra = [(name.lower().encode(), text.encode()) for name, text in response_headers().items()]
                message = {**message, "headers": [*headers, *extra]}  # type: ignore[misc]
            await send(message)

        await app(scope, receive, send_guarded)  # type: ignore[arg-type]


def _only(token: str, endpoint: Callable[[Request], Response]) -> Callable[[Request], Response]:
    """Return an endpoint that answers 404 unless the address has the token."""

    def guarded(request: Request) -> Response:
        stated = str(request.path_params["token"])
        if not secrets.compare_digest(stated.encode(), token.encode()):
            return PlainTextResponse("Not Found\n", 404)
        return endpoint(request)

    return guarded


def _redirect_home(request: Request) -> Response:
    return RedirectResponse("conversation", 303)


def _conversation_endpoint(inspection: Inspection) -> Callable[[Request], Response]:
    def show_conversation(request: Request) -> Response:
        number = _whole_number(request.query_params, "message")
        if number is not None:
            page = page_of(pair_results(inspection.messages), number)
            return RedirectResponse(f"conversation?page={page}#m-{number}", 303)
        page = _whole_number(request.query_params, "page") or 1
        return _page_response(conversation_document(inspection, page))

    return show_conversation


def _renderings_endpoint(inspection: Inspection, first: RequestedComparison) -> Callable[[Request], Response]:
    open_model = lru_cache(maxsize=8)(open_adapter)

    def show_renderings(request: Request) -> Response:
        query = request.query_params
        models = tuple(dict.fromkeys(name.strip() for name in query.getlist("model") if name.strip()))
        requested = replace(first, models=models or first.models)
        page = _whole_number(query, "page") or 1
        return _page_response(renderings_document(inspection, requested, query, page, open_model))

    return show_renderings


def _page_response(text: str) -> Response:
    return Response(text.encode("utf-8", "replace"), media_type="text/html; charset=utf-8")


def _whole_number(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and 0 < len(text) < 10 else None
