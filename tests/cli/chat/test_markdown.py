"""Markdown on a terminal: all text is shown, once, however it comes in pieces, and however long it is."""

import io
import random

import pytest
from rich.console import Console
from sabir_cli.chat import markdown
from sabir_cli.chat.markdown import MarkdownWriter

from tests.cli.terminal import screen_of

TEXT = """# A title

Some *words*, `code`, [a link](https://x.example/y) and List<String> <b>as it is</b>.

1. one
2. two

   more of it

| city | rain |
|------|------|
| Rome | no   |

```python
def add(a, b):
    return a + b
```

[1]: https://x.example/z
"""
SHOWN = """A title

Some words, code, a link (https://x.example/y) and List<String> <b>as it is</b>.

1. one
2. two
   more of it

 city  rain
 ──────────
 Rome  no

def add(a, b):
    return a + b

[1]: https://x.example/z
"""


def written(*pieces: str, height: int = 24, width: int = 80) -> list[str]:
    """The lines that a terminal shows, those that have scrolled away among them."""
    file = io.StringIO()
    writer = MarkdownWriter(Console(file=file, force_terminal=True, width=width, height=height, highlight=False))
    for piece in pieces:
        writer.write(piece)
    writer.end()
    return screen_of(file.getvalue(), height)


@pytest.fixture(autouse=True)
def drawn_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every piece is drawn, however fast it comes."""
    monkeypatch.setattr(markdown, "SECONDS", 0.0)
    monkeypatch.setattr(markdown.time, "monotonic", lambda: 0.0)


def test_all_text_is_shown() -> None:
    assert written(TEXT) == SHOWN.splitlines()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("height", [4, 24])
def test_the_end_is_the_same_however_the_text_comes(seed: int, height: int) -> None:
    """Nothing is drawn twice, and nothing is lost where the terminal is lower than the text."""
    chance, pieces, rest = random.Random(seed), [], TEXT
    while rest:
        at = chance.randint(1, 12)
        pieces.append(rest[:at])
        rest = rest[at:]

    assert written(*pieces, height=height) == SHOWN.splitlines()


def test_a_block_that_is_longer_than_the_screen_stays_whole() -> None:
    """While it comes its end is shown; then it is there once."""
    lines = [f"x{number} = {number}" for number in range(60)]
    pieces = [f"{line}\n" for line in ["```python", *lines, "```"]]

    assert written(*pieces, height=10) == lines


def test_what_was_left_in_the_middle_stays() -> None:
    """An interruption loses nothing of what came."""
    assert written("First.\n\n", "Second **half") == ["First.", "", "Second **half"]


def test_an_image_keeps_its_place_and_its_address() -> None:
    assert written("Look: ![a sky](http://x.example/z.png) here.\n") == ["Look: a sky (http://x.example/z.png) here."]


def test_a_narrow_table_loses_nothing_of_its_cells() -> None:
    """Long words are folded."""
    words = ["alphabetically" * 2, "beta" * 6, "gamma" * 5]
    lines = written(f"| a | b | c |\n|---|---|---|\n| {' | '.join(words)} |\n", width=40)

    assert not any("…" in line for line in lines)
    assert sorted("".join("".join(lines[2:]).split())) == sorted("".join(words))
