"""Every modality can be created, and every medium that a dialect's table accepts has an encoder.

a row in the media table of a `dialect.py` ──▶ this test encodes such a medium
"""

from collections.abc import Iterator
from typing import get_args

import sabir
from pydantic import ValidationError
from sabir.authoring import DataURL, Dialect, MediaURL, Modality
from sabir.errors import MediaRefused
from sabir.rendering.renderer import Renderer
from sabir.vocabulary.media import DEFAULT_MIMES
from sabir_testing.histories.samples import call_message, result_message


def test_every_modality_can_be_created() -> None:
    faults = list(missing())
    assert not faults, "\n".join(faults)


def missing() -> Iterator[str]:
    """Yield what lacks of each modality: the file, and what to add there."""
    for modality in get_args(Modality):
        if not callable(getattr(sabir, modality, None)):
            yield f"core/src/sabir/vocabulary/constructors.py: add the function {modality}, and export it"
        if not hasattr(sabir.MessageBuilder, f"add_{modality}"):
            yield f"core/src/sabir/hooks/builders.py: add the method add_{modality}"
        try:
            MediaURL(DataURL.from_bytes(b"\0", DEFAULT_MIMES.get(modality, "none/none"))).check()
        except MediaRefused as error:
            yield f"core/src/sabir/vocabulary/media.py: _ALLOWED_MIMES has no type of {modality}: {error}"


def test_every_medium_of_a_table_has_an_encoder() -> None:
    faults = [fault for dialect in dialects() for fault in unencoded(dialect)]
    assert not faults, "\n".join(faults)


def dialects() -> list[Dialect]:
    names = ("anthropic.messages", "echo.plain", "google.generate_content", "openai.chat", "openai.responses")
    return [sabir.dialect(name).dialect for name in names]


def unencoded(dialect: Dialect) -> Iterator[str]:
    """Yield the media, also those that a quirk adds, that the dialect accepts and cannot encode."""
    provider = dialect.name.partition(".")[0]
    for quirk in ("", *dialect.tables.variants):
        target = sabir.Target(provider=provider, dialect=dialect.name, model="m")
        renderer = Renderer(dialect, target, quirks=frozenset({quirk} if quirk else ()))
        for side, modality in renderer.scope.tables.media:
            data_url = f"data:{DEFAULT_MIMES.get(modality)};base64,AAAA"
            for url in (data_url, "https://e.org/a", f"provider-file:{provider}/a"):
                try:
                    renderer.render(messages_of(side, sabir.MediaPart(modality=modality, url=url)))
                except ValidationError:  # the type of the data is not allowed: the test above names it
                    continue
                except KeyError as error:
                    module = dialect.encode_turn.__module__
                    yield f"{module}: cannot encode {modality} in {side} messages ({url[:13]}): KeyError {error}"


def messages_of(side: str, part: sabir.MediaPart) -> list[sabir.Message]:
    """Return a conversation with the medium on that side."""
    if side == "results":
        return [sabir.user("a"), call_message("1", {}), result_message("1", parts=(part,))]
    return [sabir.user("a"), sabir.user(part) if side == "user" else sabir.assistant(part), sabir.user("b")]
