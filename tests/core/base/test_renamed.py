"""Former names: what packages that were built before the renaming call or define means what has the new name."""

from types import SimpleNamespace
from typing import Any

import pytest
from sabir import MediaPart, authoring
from sabir.authoring import Access, DataURL, History, RequestScope, SDKProvider
from sabir.base.renamed import METHODS, RENAMED

CLASSES: dict[str, Any] = {each.__name__: each for each in (DataURL, History, MediaPart, RequestScope, SDKProvider)}


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_a_former_name_gives_what_has_the_new_name(old: str, new: str) -> None:
    assert getattr(authoring, old) is getattr(authoring, new)


def test_former_names_are_not_listed() -> None:
    assert RENAMED.keys() & {*authoring.__all__, *dir(authoring)} == set()


@pytest.mark.parametrize(
    ("name", "old", "new"), [(name, *row) for name, rows in METHODS.items() for row in rows.items()]
)
def test_a_method_is_called_by_its_former_name(name: str, old: str, new: str) -> None:
    assert vars(CLASSES[name])[old] is vars(CLASSES[name])[new]


def test_a_provider_that_defines_former_names_connects() -> None:
    class Former(SDKProvider):
        name, dialects, url = "former", ("chat",), "https://former.example"

        def dialect(self, short_name: str) -> Any: ...

        def own(self, access: Any, key: Any) -> Any:
            return "own"

        def given(self, client: object) -> Any:
            return client

    provider: Any = Former()  # type: ignore[abstract]
    client = SimpleNamespace(base_url="https://former.example")
    assert provider.connect(Access()) == "own"
    assert provider.connect(Access(client=client)) is client
