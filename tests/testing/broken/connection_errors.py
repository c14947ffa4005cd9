"""Connections whose errors do not name their provider."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from sabir.errors import ConnectionFailed

from tests.testing.broken import connections
from tests.testing.harness import Breakage

CASE = "test_a_failed_connection_names_its_provider"


class Nameless(connections.Line):
    """In one way, a failure to connect is raised without the provider's name."""

    def translate(self, error: Exception) -> Any:
        return error if isinstance(error, ConnectionFailed) else self.base.translate(error)


def without_name(error: Exception, connection: Any) -> Exception:
    known = connection.translate(error)
    is_unnamed = isinstance(known, ConnectionFailed)
    return ConnectionFailed("a service cannot be reached", provider="") if is_unnamed else error


BROKEN: Mapping[str, Breakage] = {
    f"{CASE}[{way}]": Breakage(connection=partial(Nameless, way=way, raised=without_name))
    for way in ("waiting", "async")
}
