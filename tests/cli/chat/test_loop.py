"""`sabir chat` on a terminal, as someone at a keyboard has it: sessions from the first key to the last."""

import json
import os
import re
import sys
from pathlib import Path

import pytest

from tests.cli.chat import slow
from tests.cli.command import run, run_here
from tests.cli.terminal import lines_of, on_terminal, posix

pytestmark = posix

ECHO = ("chat", "-m", "echo:any")
READY = rb"\x1b\[\?2004h"
"""The editor reads: it has asked the terminal to mark what is pasted."""
DONE = b" in, [0-9]+ out.*" + READY
SLOW = (sys.executable, slow.__file__)


def kept(name: str = "1") -> list[str]:
    """What the texts of a kept conversation say."""
    shown = json.loads(run_here("chats", "show", name, "--json").stdout)
    return [part["text"] for message in shown for part in message["payload"].get("parts", ())]


def test_what_is_said_is_answered_kept_and_gone_on_with() -> None:
    """The second session knows the first; leaving says under which name it is kept."""
    code, seen = on_terminal(*ECHO, typed=[(READY, b"Hello **there**\r"), (DONE, b"/quit\r")])
    assert code == 0
    assert "Hello there" in lines_of(seen)
    assert b"saved as 1; sabir chat -c continues it" in seen

    code, seen = on_terminal("chat", "-c", typed=[(READY, b"more\r"), (DONE, b"\x04")])
    assert code == 0
    assert b"> Hello **there**" in seen
    assert kept() == ["Hello **there**", "Hello **there**", "more", "more"]


def test_a_paste_is_one_message() -> None:
    paste = b"\x1b[200~first\nsecond\n/quit\x1b[201~"
    on_terminal(*ECHO, typed=[(READY, paste), (b"/quit", b"\r"), (DONE, b"\x04")])

    assert kept() == ["first\nsecond\n/quit"] * 2


@pytest.mark.parametrize("key", [b"\x1b\r", b"\\\r"], ids=["Alt-Enter", "a backslash and Enter"])
def test_a_message_of_several_lines_is_entered(key: bytes) -> None:
    """Enter alone sends."""
    on_terminal(*ECHO, typed=[(READY, b"first" + key), (b"first", b"second\r"), (DONE, b"\x04")])

    assert kept() == ["first\nsecond"] * 2


def test_a_reply_is_stopped_and_asked_again_and_two_keys_leave() -> None:
    """Ctrl-C: the turn is discarded and said to be; what came stays on the screen. Nothing of it is kept."""
    typed = [
        (READY, b"Tell me.\r"),
        (b"word3", b"\x03"),
        (b"discarded; /retry asks it again.*" + READY, b"/retry\r"),
        (b"word2", b"\x03"),
        (b"discarded.*" + READY, b"\x03"),
    ]
    code, seen = on_terminal("chat", "-m", "slow:any", typed=typed, program=SLOW)

    assert code == 0
    assert any(line.startswith("word0 word1 word2") for line in lines_of(seen))
    assert run_here("chats", "--json").stdout == b"[]\n"


@pytest.mark.parametrize("ends", ["stopped", "killed"])
def test_retry_that_does_not_finish_keeps_the_old_answer(ends: str, tmp_path: Path) -> None:
    """Ctrl-C says so; after the death of the process, the next one has the old answer too."""
    run_here(*ECHO, "Tell me.")
    (tmp_path / "deadly.py").write_text("import os\ndef look() -> str:\n    os._exit(9)\n")
    if ends == "stopped":
        typed = [(READY, b"/retry\r"), (b"word3", b"\x03"), (b"earlier answer is kept.*" + READY, b"\x04")]
        on_terminal("chat", "-c", "-m", "slow:any", typed=typed, program=SLOW)
    else:
        run(*ECHO, "-c", "--option", "deadly:look", "call none {}", env={"PYTHONPATH": str(tmp_path)})
        typed = [(READY, b"/drop\r"), (b"removed.*" + READY, b"/retry\r"), (b"word3", b"\x04\x1c")]
        code, _ = on_terminal("chat", "-c", "-m", "slow:any", typed=typed, program=SLOW)
        assert code < 0

    assert kept() == ["Tell me."] * 2


def test_what_is_typed_while_a_reply_comes_is_there_afterwards() -> None:
    """It does not stand amid the reply, and Ctrl-C does not throw it away."""
    typed = [
        (READY, b"Tell me.\r"),
        (b"word2", b"later"),
        (b"word6", b"\x03"),
        (b"discarded.*" + READY + b".*later", b"\x03\x03\x03"),
    ]
    code, seen = on_terminal("chat", "-m", "slow:any", typed=typed, program=SLOW)

    assert code == 0
    assert b"later" not in seen.partition(b"discarded")[0]


def test_a_turn_that_a_killed_process_left_is_told_and_gone_on_with(tmp_path: Path) -> None:
    """What ran does not run again: the option of the second process is another."""
    for name, body in (("deadly", "import os; os._exit(9)"), ("lively", "return 'there'")):
        (tmp_path / f"{name}.py").write_text(f"def look() -> str:\n    {body}\n")
    env = {"PYTHONPATH": str(tmp_path)}
    assert run(*ECHO, "--option", "deadly:look", "call look {}", env=env).returncode == 9

    typed = [(READY, b"/retry\r"), (DONE, b"\x04")]
    code, seen = on_terminal("chat", "-c", "--option", "lively:look", typed=typed, env=env)

    assert code == 0
    assert b"this turn was interrupted: /retry continues it" in seen
    assert kept() == ["call look {}", "there"]


def test_one_prompt_that_is_interrupted_keeps_nothing() -> None:
    """It ends as interrupted programs do."""
    code, seen = on_terminal("chat", "-m", "slow:any", "Tell me.", typed=[(b"word3", b"\x03")], program=SLOW)

    assert code == 130
    assert b"Traceback" not in seen
    assert run_here("chats", "--json").stdout == b"[]\n"


def test_a_key_on_an_empty_line_leaves_when_it_is_pressed_twice() -> None:
    """Once, it says so; with something written, it clears the line, which the upward key gets back."""
    typed = [
        (READY, b"Hello"),
        (b"Hello", b"\x03\x03"),
        (b"again to leave.*" + READY, b"\x1b[A\r"),
        (DONE, b"\x03"),
        (b"again.*" + READY, b"\x03"),
    ]
    code, _ = on_terminal(*ECHO, typed=typed)

    assert code == 0
    assert kept() == ["Hello"] * 2


def test_a_turn_that_failed_is_discarded_and_a_wrong_file_is_told_at_once(tmp_path: Path) -> None:
    """The conversation goes on."""
    (tmp_path / "notes.md").write_text("a note", "utf-8")
    typed = [
        (READY, b"fail 500\r"),
        (b"discarded.*" + READY, f"/file {tmp_path}/none.md\r".encode()),
        (b"cannot.*" + READY, f"/file {tmp_path}/notes.md\r".encode()),
        (b"removes attachments.*" + READY, b"Read it.\r"),
        (DONE, b"\x04"),
    ]
    on_terminal(*ECHO, typed=typed)

    assert kept()[:2] == ["notes.md:\na note\n", "Read it."]


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"LC_ALL": "C"}], ids=str)
def test_a_terminal_that_can_do_less_is_shown_the_text_as_it_is(env: dict[str, str]) -> None:
    typed = [(b">", "Hello **you** …\r".encode()), (b" out.*>", b"\x04")]
    code, seen = on_terminal(*ECHO, typed=typed, env=env)
    said = seen.partition(b"you")[2]

    assert code == 0
    assert b"Hello **you**" in said
    assert seen.isascii() == ("LC_ALL" in env)


def test_forty_columns_are_enough() -> None:
    """No line is longer, and none is folded within a word."""
    typed = [(READY, b"/help\r"), (b"leaves;.*" + READY, b"What is this all about then?\r"), (DONE, b"\x04")]
    _, seen = on_terminal(*ECHO, typed=typed, columns=40)
    lines = [line.rstrip() for line in lines_of(seen)]

    assert max(map(len, lines)) <= 40
    assert "/model [name]       show the model; or" in lines
    assert "                    switch to another" in lines


@pytest.mark.parametrize("env", [{}, {"TERM": "dumb"}], ids=["editor", "lines"])
def test_exit_typed_as_a_message_asks_whether_to_leave(env: dict[str, str]) -> None:
    """It is not sent; N is what Enter means, and two slashes send the word."""
    ready = READY if not env else rb"> $"
    typed = [
        (ready, b" Exit \r"),
        (rb"Leave\? y/N", b"\r"),
        (ready, b"//quit\r"),
        (b"1 in, 1 out.*" + ready, b"quit\r"),
        (rb"Leave\? y/N", b"y\r"),
    ]
    code, seen = on_terminal(*ECHO, typed=typed, env=env)

    assert code == 0
    assert b"saved as 1" in seen
    assert kept() == ["/quit"] * 2


def test_exit_in_a_pipe_is_a_question() -> None:
    """There is nobody to ask."""
    assert run_here(*ECHO, given=b"exit\n").stdout == b"exit\n"


@pytest.mark.parametrize(
    ("begun", "completed"), [("/mod", "/model"), ("/file no", "/file notes.md"), ("/model ech", "/model echo:only")]
)
def test_tab_inserts_the_only_candidate(begun: str, completed: str, tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("a note", "utf-8")
    (tmp_path / "talk.py").write_text(
        "import sys\nimport sabir_cli.chat.slash_commands as words\nfrom sabir_cli.main import main\n"
        "words._model_names = lambda: iter(['echo:only', 'other:x'])\nsys.exit(main())\n"
    )
    typed = [(READY, begun.encode()), (begun[-3:].encode(), b"\t!\x03"), (b"!", b"\x03\x03\x03")]
    program = (sys.executable, str(tmp_path / "talk.py"))
    on_terminal(*ECHO, typed=typed, program=program, env={"PYTHONPATH": str(tmp_path)}, cwd=tmp_path)

    entered = (Path(os.environ["SABIR_HOME"]) / "history").read_text("utf-8")
    assert f"+{completed}!" in entered.splitlines()


def test_a_paste_where_there_is_no_editor_is_one_message() -> None:
    """A line of it that looks like a command is not one."""
    typed = [(rb"> $", b"first\nsecond\n/quit\n"), (b" in, [0-9]+ out.*> $", b"\x04")]
    on_terminal(*ECHO, typed=typed, env={"TERM": "dumb"})

    assert kept() == ["first\nsecond\n/quit"] * 2


def test_sigterm_while_a_reply_comes_restores_the_terminal() -> None:
    """The cursor is shown and keys are echoed again; the question is kept, to be continued."""
    script = (
        f"{sys.executable} {slow.__file__} chat -m slow:any 'Tell me.' & child=$!; sleep 4; kill -TERM $child;"
        " wait $child; echo code $?; stty -a"
    )
    _, seen = on_terminal("-c", script, program=("/bin/sh",))
    after = seen.rpartition(b"code ")[2]

    assert after.startswith(b"143")
    assert re.search(rb"\secho\s", after)
    assert seen.count(b"\x1b[?25l") == seen.count(b"\x1b[?25h")
    assert b"Traceback" not in seen
