"""A stranger's provider whose streams are frames of bytes: recorded, scrubbed, replayed and played by the kit.

sabir new-plugin tape ──▶ its framing (tape/frames.py) in place of server-sent events ──▶ a service of this machine
that writes such frames ──record──▶ cassettes ──▶ the kit
"""

from pathlib import Path

import pytest
import yaml

from tests.testing.harness import cases_of
from tests.third_party.stranger import CORE, ECHO, KIT, Stranger
from tests.third_party.test_new_plugin import FEWEST_CASES, counted, written

FRAMES = Path(__file__).parent / "tape" / "frames.py"
DIALECT = {
    "name=NAME,": "name=NAME,\n    framings={KIND: TapeFrames},",
    "from sabir_tape.decode": "from sabir_tape.frames import KIND, TapeFrames\nfrom sabir_tape.decode",
}
STREAM = {
    "fields = self._scope.read_object(event.data)": "fields = read_frame(event, self._scope)",
    "from sabir_tape.errors": "from sabir_tape.frames import read_frame\nfrom sabir_tape.errors",
}
SERVICE = {
    'lines = (f"data: {json.dumps(event, ensure_ascii=False)}\\n\\n" for event in events(answer(request)))': "",
    '"".join(lines), "text/event-stream")': 'b"".join(map(frame, events(answer(request)))), "application/x-tape")',
    "text: str, kind": "text: Any, kind",
    "data = text.encode()": "data = text if isinstance(text, bytes) else text.encode()",
    "digest(text)}": "digest(str(text))}",
    "class Handler(": '''def frame(event: dict[str, Any]) -> bytes:
    """An event as it is sent."""
    kind, index = event.pop("type"), event.pop("index", 0)
    payload = (event["text"] if kind == "more" else json.dumps(event, ensure_ascii=False)).encode()
    head = kind[0].encode() + bytes([index]) + len(payload).to_bytes(2, "big")
    return head + bytes([128 + sum(payload) % 128]) + payload


class Handler(''',
}
SUITE = """

def error_event(self, body):
    from sabir.authoring import ServerEvent

    return ServerEvent(body, "f 0")


TestTape.error_event = error_event
"""
SWALLOWS = "\n\nChatDecoder.feed = lambda self, event: ()\n"


def change(path: Path, changes: dict[str, str]) -> None:
    """Write other words into a file, each of which stands there."""
    said = path.read_text("utf-8")
    for old, new in changes.items():
        assert old in said, old
        said = said.replace(old, new)
    path.write_text(said, "utf-8")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Stranger:
    """With the package as its author changed it, and with no recording of streams but new ones."""
    folder = tmp_path_factory.mktemp("tape")
    package = written(folder, "tape")
    source = package / "src" / "sabir_tape"
    (source / "frames.py").write_text(FRAMES.read_text("utf-8"), "utf-8")
    change(source / "dialect.py", DIALECT)
    change(source / "stream.py", STREAM)
    change(package / "tests" / "service.py", SERVICE)
    made = Stranger(folder)
    made.install(CORE, KIT, ECHO, package)
    suite = made.copy(package) / "tests" / "test_tape.py"
    suite.write_text(suite.read_text("utf-8") + SUITE, "utf-8")
    for path in suite.parent.glob("cassettes/*.yaml"):
        path.unlink()
    counted(made.ask("-m", "pytest", "-q", "-p", "offline", "--sabir-record", "-k", "recorded or streamed"), "TestTape")
    return made


def test_frames_of_bytes_pass_the_kit(stranger: Stranger) -> None:
    """Every case that reads an answer, on recordings that hold the frames as bytes; the others see no frame."""
    recorded = yaml.safe_load((stranger.folder / "copy/tests/cassettes/text_streamed.yaml").read_text("utf-8"))
    chosen = " or ".join([*cases_of("replies"), *cases_of("streams"), *cases_of("errors")])
    cases, outcome = counted(stranger.ask("-m", "pytest", "-q", "-p", "offline", "-k", chosen), "TestTape")

    assert isinstance(recorded["interactions"][0]["response"]["body"]["string"], bytes)
    assert cases > FEWEST_CASES // 3
    assert outcome == f"{cases} passed"


def test_a_decoder_of_frames_that_swallows_everything_fails_every_stream_case(stranger: Stranger) -> None:
    """Nothing is looked at where nothing came."""
    decoder = Path(stranger.ask("-c", "import sabir_tape.stream as it; print(it.__file__)").strip())
    sound = decoder.read_text("utf-8")
    decoder.write_text(sound + SWALLOWS, "utf-8")
    try:
        cases = cases_of("streams")
        with pytest.raises(AssertionError) as failed:
            stranger.ask("-m", "pytest", "-q", "-p", "offline", "-rf", "-k", " or ".join(cases))
    finally:
        decoder.write_text(sound, "utf-8")

    assert [case for case in cases if f"::{case}" not in str(failed.value)] == []
    assert f"{len(cases)} failed" in str(failed.value)
