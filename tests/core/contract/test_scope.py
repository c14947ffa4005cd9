"""The vendor's own settings, strict, and neutral ones that a model refuses."""

from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict
from sabir.base.values import FrozenDict
from sabir.contract.scope import RequestScope
from sabir.contract.turns import LossLog
from sabir.errors import SettingsInvalid
from sabir.vocabulary.models import ModelInfo
from sabir.vocabulary.settings import Settings, SettingsReader, Target


class Own(BaseModel):
    model_config = ConfigDict(extra="forbid")
    tier: str | None = None
    user: str | None = None


def scope(vendor: dict[str, Any] | None = None, info: ModelInfo | None = None, **settings: Any) -> RequestScope:
    return RequestScope(
        target=Target(provider="acme", dialect="acme.wire", model="m"),
        settings=SettingsReader(Settings(**settings)),
        options=(),
        option_names={"the weather": "the_weather"},
        system=(),
        vendor=FrozenDict(vendor or {}),
        losses=LossLog(),
        model_info=info or ModelInfo(prefix="m"),
    )


def test_only_what_is_set_is_sent() -> None:
    """A null that the user wrote is set, too."""
    assert scope({"tier": None}).read_vendor(Own) == {"tier": None}


def test_what_the_vendor_does_not_have_is_refused() -> None:
    with pytest.raises(SettingsInvalid, match=r"vendor\['acme'\] for acme.wire: .*colour.*tier, user.*extra_body"):
        scope({"colour": "red"}).read_vendor(Own)


@pytest.mark.parametrize(
    ("info", "settings", "name"),
    [
        (ModelInfo(prefix="m", reasoning=False), {"reasoning_effort": "low"}, "reasoning_effort"),
        (ModelInfo(prefix="m", rejects=("top_p",)), {"top_p": 0.5}, "top_p"),
    ],
)
def test_what_the_model_refuses_is_a_loss(info: ModelInfo, settings: dict[str, Any], name: str) -> None:
    """UP-18: not sent, and said; another model gets it."""
    refusing, taking = scope(info=info, **settings), scope(**settings)

    assert refusing.setting(name) is None
    assert [(loss.kind, loss.path) for loss in refusing.losses.losses] == [("dropped", f"settings.{name}")]
    assert taking.setting(name) == settings[name]
    assert not taking.losses.losses


def test_a_choice_has_its_name_on_the_wire() -> None:
    assert scope().name_choice("the weather") == "the_weather"
    with pytest.raises(SettingsInvalid, match=r"'rain'.*options are: the weather"):
        scope().name_choice("rain")
