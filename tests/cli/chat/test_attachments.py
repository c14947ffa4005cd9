"""What goes with a message: media as they are named, and files by their kind."""

from pathlib import Path

import pytest
import sabir
from sabir_cli.chat.attachments import AttachmentFlags, attach
from sabir_cli.output import UsageError

PNG = b"\x89PNG\r\n\x1a\n" + bytes(50)


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("sky.png", PNG, "image"),
        ("talk.wav", b"RIFF\x24\0\0\0WAVEfmt " + bytes(20), "audio"),
        ("paper.pdf", b"%PDF-1.7\n", "document"),
        ("notes.md", "ü\n".encode(), "text"),
        ("Makefile", b"all:\n", "text"),
    ],
)
def test_a_file_is_attached_by_its_kind(name: str, data: bytes, kind: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    part = attach("file", str(tmp_path / name))

    assert (part.modality if isinstance(part, sabir.MediaPart) else "text") == kind
    assert not isinstance(part, sabir.TextPart) or part.text == f"{name}:\n{data.decode()}\n"


def test_bytes_that_are_nothing_known_are_refused(tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="--image, --audio or --document"):
        attach("file", str(tmp_path / "data.bin"))


def test_each_flag_gives_its_own_kind() -> None:
    """URLs stay URLs."""
    given = AttachmentFlags(
        image=["https://a.example/x"], audio=["https://a.example/y"], document=["https://a.example/z"]
    )

    assert [part.modality for part in given.parts() if isinstance(part, sabir.MediaPart)] == [
        "image",
        "audio",
        "document",
    ]
