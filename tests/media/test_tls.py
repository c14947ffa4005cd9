"""Fetches by https: the connection goes to the judged address, and speaks TLS with the name of the URL.

The server and the context that trusts it agree on a cipher without certificates, so that no key has to be kept.
"""

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator

import pytest
from sabir_media import FetchFailed, FetchTimedOut, GuardedFetcher

from tests.media.conftest import Fetch
from tests.media.server import PNG, response

WITHOUT_CERTIFICATES = "AECDH-AES256-SHA:@SECLEVEL=0"


def context(protocol: int) -> ssl.SSLContext:
    """A TLS context that neither shows nor asks for a certificate."""
    made = ssl.SSLContext(protocol)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    made.maximum_version = ssl.TLSVersion.TLSv1_2
    made.set_ciphers(WITHOUT_CERTIFICATES)
    return made


@contextlib.contextmanager
def serving_tls(names: list[str]) -> Iterator[int]:
    """A port where a picture is served by TLS; the names that clients asked for are noted."""
    tls = context(ssl.PROTOCOL_TLS_SERVER)
    tls.sni_callback = lambda connection, name, context: names.append(str(name))
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    with contextlib.suppress(OSError), client:
                        with tls.wrap_socket(client, server_side=True) as secured:
                            names.append(secured.recv(65536).decode().split("\r\n")[1])
                            secured.sendall(response())

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_tls_is_spoken_with_the_name_of_the_url_and_the_address_that_was_judged(fetch: Fetch) -> None:
    """Server name and Host header are the URL's; the name itself is in no DNS."""
    names: list[str] = []
    with serving_tls(names) as port:
        fetcher = GuardedFetcher(
            allow_hosts=[f"media.test:{port}"],
            resolver=lambda host, port: ["127.0.0.1"],
            ssl_context=context(ssl.PROTOCOL_TLS_CLIENT),
        )
        media = fetch(fetcher, f"https://media.test:{port}/a.png")

    assert media.data == PNG
    assert names == ["media.test", f"Host: media.test:{port}"]


def test_a_server_that_proves_no_identity_is_refused_by_default(fetch: Fetch) -> None:
    """The system's certificates decide; without one there is no connection."""
    with serving_tls([]) as port:
        with pytest.raises(FetchFailed, match="no connection"):
            fetch(GuardedFetcher(allow_hosts=[f"127.0.0.1:{port}"]), f"https://127.0.0.1:{port}/a.png")


def test_the_time_limit_holds_for_a_handshake(fetch: Fetch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host = f"127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(FetchTimedOut):
            fetch(GuardedFetcher(allow_hosts=[host], timeout=0.2), f"https://{host}/a.png")
