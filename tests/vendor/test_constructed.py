"""Every answer that vendors' own services returned decodes to what the constructors of its models make (law 11)."""

import pytest
import sabir
from sabir.errors import CallError

from tests.core.constructed import check_constructed
from tests.vendor.support import WIRES, Exchange, exchanges_of, scope_for

WHOLE = {name: [each for each in exchanges_of(name) if each.response and (each.status or 200) < 400] for name in WIRES}


@pytest.mark.parametrize("name", WIRES)
def test_what_is_decoded_is_what_its_constructors_make(name: str) -> None:
    """Messages and calls are assembled without validation; here they are validated."""
    decoded = [each for each in WHOLE[name] if _is_checked(name, each)]

    assert len(decoded) > 0.8 * len(WHOLE[name]) > 50


def _is_checked(name: str, exchange: Exchange) -> bool:
    """Whether the exchange holds a reply; it is then checked."""
    try:
        reply = sabir.dialect(name).dialect.decode(exchange.body, scope_for(exchange, name))
    except CallError:
        return False
    check_constructed(reply)
    return True
