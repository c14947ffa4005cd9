"""Models are rows of data; the longest prefix counts."""

import pytest
from sabir.errors import PluginError
from sabir.vocabulary.models import UNKNOWN_MODEL, ModelInfo, find_model, read_models

TEXT = """
[[models]]
prefix = "large"
family = "large"
modalities = ["image", "audio"]
context_tokens = 200000

[[models]]
prefix = "large-mini"
family = "large"
rejects = ["temperature"]
reasoning = true

[[models]]
prefix = "s"
facts = {released = "2026-05", tiers = [1, 2]}
"""


def test_rows_are_read_longest_prefix_first() -> None:
    infos = read_models(TEXT)

    assert [info.prefix for info in infos] == ["large-mini", "large", "s"]
    assert infos[1] == ModelInfo(prefix="large", family="large", modalities=("image", "audio"), context_tokens=200000)
    assert infos[0].modalities is None
    assert infos[2].facts == {"released": "2026-05", "tiers": [1, 2]}
    assert read_models("") == ()


@pytest.mark.parametrize(
    ("name", "prefix"), [("large-mini-2", "large-mini"), ("large-2", "large"), ("small", "s"), ("other", ""), ("", "")]
)
def test_a_model_is_found_by_its_longest_prefix(name: str, prefix: str) -> None:
    for infos in (read_models(TEXT), tuple(reversed(read_models(TEXT)))):
        assert find_model(infos, name).prefix == prefix
    assert find_model((), "large") is UNKNOWN_MODEL
    assert ModelInfo(prefix="") == UNKNOWN_MODEL


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[models]", "models.toml is not TOML"),
        ("[models]\nprefix = 'a'", "expected only .*models.* rows"),
        ("[[model]]\nprefix = 'a'", "models.toml has 'model'"),
        ("models = [3]", r"models.toml row 1 \(''\): Input should be"),
        ("[[models]]\nprefix = 'a'\n[[models]]\nfamily = 'b'", r"models.toml row 2 \(''\): prefix: Field required"),
        ("[[models]]\nprefix = 'a'\nsize = 3", r"models.toml row 1 \('a'\): size: Extra inputs"),
        ("[[models]]\nprefix = 'a'\nmodalities = ['smell']", r"row 1 \('a'\): modalities.0: Input should be 'image'"),
        ("[[models]]\nprefix = 'a'\nfacts = 3", r"row 1 \('a'\): facts: "),
        ("[[models]]\nprefix = 'a'\n[[models]]\nprefix = 'a'", "row 2: prefix 'a' already has a row; merge the two"),
    ],
)
def test_a_wrong_row_is_named(text: str, words: str) -> None:
    with pytest.raises(PluginError, match=words) as caught:
        read_models(text)

    assert "\n" not in str(caught.value)


def test_a_clouds_name_of_a_model_is_found_by_its_family() -> None:
    infos = read_models('[[models]]\nprefix = "large-2"\n[[models]]\nprefix = "eu.maker"\n')

    assert find_model(infos, "us.maker.large-2-v1:0", "large-2").prefix == "large-2"
    assert find_model(infos, "eu.maker.large-2-v1:0", "large-2").prefix == "eu.maker"
    assert find_model(infos, "", "") is UNKNOWN_MODEL
