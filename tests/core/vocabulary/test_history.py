"""Histories at rest: what was written loads again, what a newer writer added survives, what is none is named."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError
from sabir.errors import HistoryInvalid, SabirError, WrongWord
from sabir.vocabulary.constructors import system, user
from sabir.vocabulary.history import dumps, dumps_lines, load, loads, save, schema
from sabir.vocabulary.messages import SCHEMA, Message, PartsPayload
from sabir.vocabulary.parts import TextPart, UnknownPart

from tests.core.samples import EVERY_KIND, json_values, messages
from tests.core.support import raises_line
from tests.core.write_schema import PUBLISHED, rendered

VALIDATOR = jsonschema.Draft202012Validator(schema())
HISTORY = [system("Be brief."), user("Grüße, 世界 \u2028 \x00 end"), *EVERY_KIND]


@given(st.lists(messages, max_size=4))
def test_what_is_written_loads_again_equal_and_of_the_same_types(history: list[Message]) -> None:
    """PJ-11, PJ-20: as an array and as JSON Lines, text and bytes, whatever space is between; it fits the schema."""
    for text in (dumps(history), f" {dumps(history)}\n", dumps_lines(history).replace("\n", "\r\n\n")):
        assert loads(text) == loads(text.encode()) == history
        assert dumps(loads(text)) == dumps(history)
    VALIDATOR.validate(json.loads(dumps(history)))
    VALIDATOR.validate([json.loads(message.model_dump_json()) for message in history])
    for message in history:
        again = Message.model_validate_json(message.model_dump_json(), strict=True)
        assert again == message
        assert [type(part) for part in (again.payload, *again.parts)] == [
            type(part) for part in (message.payload, *message.parts)
        ]


def test_a_history_is_one_message_a_line() -> None:
    message = Message(id="1", policy="user", payload=PartsPayload(parts=(TextPart(text="ä"),)))
    part = '{"kind":"text","text":"ä","citations":[]}'
    line = '{"schema":2,"id":"1","policy":"user","payload":{"kind":"parts","parts":[' + part + "]}}"

    assert dumps([message, message]) == f"[\n{line},\n{line}\n]\n"
    assert dumps_lines([message, message]) == f"{line}\n{line}\n"
    assert dumps([]) == "[]\n"
    assert loads(dumps([])) == []


NEWER: dict[str, Any] = {
    "schema": SCHEMA + 1,
    "id": "m",
    "policy": "llm",
    "tags": ["x", None, {"b": 1, "a": 2}],
    "nothing": None,
    "origin": {"provider": "p", "dialect": "p.d", "region": None, "endpoint": "", "model": ""},
    "payload": {
        "kind": "parts",
        "mood": None,
        "parts": [
            {"kind": "hologram", "depth": None, "layers": [{"z": 1, "a": 2}]},
            {"kind": "text", "text": "a", "weight": None, "citations": [{"kind": "page", "page": 3, "shelf": None}]},
        ],
    },
}


def test_what_a_newer_writer_added_is_kept_verbatim_and_written_back() -> None:
    message = loads(json.dumps([NEWER]))[0]
    written = json.loads(dumps([message]))[0]

    assert isinstance(message.parts[0], UnknownPart)
    assert message.schema_number == SCHEMA + 1
    assert _holds(written, NEWER)
    assert list(written["payload"]["parts"][0]["layers"][0]) == ["z", "a"]
    assert loads(dumps([message])) == [message]
    with pytest.raises(ValueError, match="Message has no field 'tags'"):
        Message.model_validate({**json.loads(MESSAGE % "a"), "tags": []})


def _medium(**fields: str) -> dict[str, Any]:
    return {"policy": "u", "payload": {"kind": "parts", "parts": [{"kind": "media", **fields}]}}


LATER: dict[str, dict[str, Any]] = {
    "payload": {"policy": "llm", "payload": {"kind": "plan", "steps": [{"b": 1, "a": None}]}},
    "hint": {
        "policy": "u",
        "role_hint_for_llm": "critic",
        "payload": {"kind": "parts", "parts": [{"kind": "text", "text": "a"}]},
    },
    "modality": _medium(modality="not yet known", url="https://example.org/a"),
    "scheme": _medium(modality="image", url="ipfs://bafy/a.png"),
    "medium of a result": {
        "policy": "f",
        "payload": {
            "kind": "option_result",
            "invocation_id": "1",
            "option_name": "f",
            "parts": [{"kind": "media", "modality": "not yet known", "url": "https://example.org/a"}],
        },
    },
}
"""What a later version may say and this one does not know, by what is new in it."""


@pytest.mark.parametrize("later", LATER.values(), ids=LATER)
def test_what_a_later_version_says_is_kept_and_written_back(later: dict[str, Any]) -> None:
    message = loads(json.dumps([later]))[0]
    written, text = json.loads(dumps([message]))[0], json.dumps(later)

    assert _holds(written, later)
    assert loads(dumps([message])) == [message]
    assert message.same_content(message.model_copy(update={"id": "another"}))
    for make in (
        lambda: Message.model_validate(later),
        lambda: Message(**later),
        lambda: Message(schema=9, **later),
        lambda: Message.model_validate_json(text),
    ):
        with pytest.raises(ValidationError):
            make()
    newer = Message.model_validate_json(json.dumps({**later, "schema": SCHEMA + 1}))
    assert newer.model_copy(update={"step_num": 1}).step_num == 1


class Body(BaseModel):
    """What a web framework makes of a request."""

    messages: list[Message]


@pytest.mark.parametrize("later", [NEWER, *LATER.values()], ids=["fields", *LATER])
def test_a_field_of_another_model_reads_a_newer_writer(later: dict[str, Any]) -> None:
    said, newer = {"schema": SCHEMA, "id": "m", **later}, {"id": "m", **later, "schema": SCHEMA + 1}
    loaded = loads(json.dumps([newer]))

    VALIDATOR.validate([later])
    assert Body.model_validate_json(json.dumps({"messages": [newer]})).messages == loaded
    assert Body.model_validate({"messages": [newer]}).messages == loaded
    assert [Message.model_validate_json(json.dumps(newer))] == [Message.model_validate(newer)] == loaded
    with pytest.raises(ValidationError):
        Body.model_validate({"messages": [{**said, "schema": SCHEMA}]})


def _holds(written: Any, given: Any) -> bool:
    """Whether all that was given stands in what was written, which also has this version's defaults."""
    if isinstance(given, dict):
        return all(name in written and _holds(written[name], value) for name, value in given.items())
    if isinstance(given, list):
        return len(written) == len(given) and all(map(_holds, written, given))
    return bool(written == given)


MESSAGE = '{"policy": "user", "payload": {"kind": "parts", "parts": [{"kind": "text", "text": "%s"}]}}'


@pytest.mark.parametrize(
    "text",
    [
        f"[{MESSAGE % 'a'}, {MESSAGE % 'b'}]",
        f"\ufeff \r\n[{MESSAGE % 'a'},\n{MESSAGE % 'b'}]\n\n",
        f"{MESSAGE % 'a'}\n{MESSAGE % 'b'}",
        f"{MESSAGE % 'a'}\r\n\r\n{MESSAGE % 'b'}\r\n",
        json.dumps(json.loads(MESSAGE % "a"), indent=2) + "\n" + MESSAGE % "b",
    ],
)
def test_both_forms_are_told_by_their_content(text: str) -> None:
    assert [message.text for message in loads(text.encode())] == ["a", "b"]


def test_loads_takes_text_and_an_empty_one_is_an_empty_history() -> None:
    for other in (None, 3, ["a"], {"policy": "u"}, Path("a.json")):
        words = f"loads needs .* str or bytes, not {type(other).__name__}; use load for a path"
        with pytest.raises(HistoryInvalid, match=words):
            loads(other)  # type: ignore[arg-type]
    for text in ("", "\n \n", b"", b"\xef\xbb\xbf", "[]"):
        assert loads(text) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hello", "line 1: not JSON: Expecting value; a history is a JSON array or JSON Lines"),
        ("<html>", "line 1: not JSON"),
        ("[", "line 1: not JSON"),
        (f"{MESSAGE % 'a'}\n{MESSAGE % 'b'}"[:-9], "line 2: not JSON"),
        (f"[{MESSAGE % 'a'}]\n[]", "line 1: text follows the JSON array"),
        ("3", "line 1 is a number; a history contains messages"),
        ('"x"', "line 1 is a string"),
        ("null", "line 1 is null"),
        ("[[]]", r"messages\[0\] is an array"),
        (f"[{MESSAGE % 'a'}, true]", r"messages\[1\] is a boolean"),
        ("{}", r"line 1 is not a message: policy: Field required; payload: Field required"),
        (
            '[{"role": "user", "content": "a"}]',
            r"messages\[0\] is a vendor's message \(content, role\); .*decode_history",
        ),
        ('{"model": "m", "messages": []}', r"line 1 is a vendor's message \(messages, model\); .*decode_history"),
        (
            '[{"policy": "u", "payload": {"kind": 3}}]',
            r"messages\[0\] is not a message: payload: Input tag '3' found using 'kind'",
        ),
        (
            '[{"policy": "u", "schema": 3, "payload": {"kind": "option_call", "option_name": "f"}}]',
            r"messages\[0\] is not a message: payload\.option_call\.invocation_id: Field required",
        ),
        (f"[{MESSAGE % 'a'}]".replace('"policy": "user"', '"policy": ""'), "policy: String should have at least 1"),
        (MESSAGE % "\\ud800", r"line 1 contains a lone surrogate U\+D800"),
        ('{"policy": "u", "later": "\\udfff", "payload": {"kind": "parts", "parts": []}}', r"lone surrogate U\+DFFF"),
        ('{"policy": "u", "step_num": NaN}', "line 1: not JSON: NaN is not a finite number"),
        ('[{"policy": "u", "later": -Infinity}]', "line 1: not JSON: -Infinity is not a finite number"),
        ('[{"policy": "u", "later": 1e999}]', "line 1: not JSON: 1e999 is not a finite number"),
        (f'{{"policy": "u", "later": {"9" * 5000}}}', "line 1: not JSON: Exceeds the limit"),
        ("[" * 100_000, "line 1: not JSON: .*recursion"),
        (b"\n\n\xff\xfe", "line 3: byte 2 is not UTF-8"),
        (MESSAGE.encode("utf-16"), "line 1: byte 0 is not UTF-8"),
    ],
)
def test_what_is_no_history_is_named_in_one_line(text: str | bytes, words: str) -> None:
    with raises_line(HistoryInvalid, match=words) as caught:
        loads(text)

    assert len(str(caught.value)) < 600


@given(
    st.binary(max_size=60)
    | json_values.map(lambda value: json.dumps(value).encode())
    | st.text(max_size=60).map(lambda text: text.encode(errors="surrogatepass"))
)
def test_any_bytes_end_in_a_history_or_in_the_librarys_own_error(data: bytes) -> None:
    try:
        assert isinstance(loads(data), list)
    except SabirError as error:
        assert "\n" not in str(error)


def test_a_message_that_json_cannot_hold_is_named_when_it_is_written() -> None:
    """Parts made past the constructors may hold a lone surrogate; a vendor's dictionary is met where it is given."""
    part = TextPart.model_construct(text="\ud800", kind="text", citations=(), state_json=None)
    payload = PartsPayload.model_construct(kind="parts", parts=(part,))
    message = user("x").model_copy()
    broken = Message.model_construct(**{**dict(message), "payload": payload})

    with raises_line(HistoryInvalid, match=r"messages\[1\] cannot be written as JSON"):
        dumps([message, broken])
    with pytest.raises(WrongWord, match=r"messages\[0\] is a role dictionary"):
        dumps([{"role": "user"}])  # type: ignore[list-item]


@pytest.mark.parametrize("name", ["history.json", "history.jsonl", "history"])
def test_a_file_is_saved_as_a_whole_and_loads_again(tmp_path: Path, name: str) -> None:
    path, plain = tmp_path / name, tmp_path / "plain"
    plain.touch()
    save(path, [user("first")])
    save(str(path), HISTORY)

    assert load(path) == HISTORY
    assert path.read_text("utf-8").startswith("[") is not name.endswith(".jsonl")
    assert {each.name for each in tmp_path.iterdir()} == {name, "plain"}
    assert len({stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()}) == 1
    for mode in (0o600, 0o640):
        path.chmod(mode)
        save(path, HISTORY)
        assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_failed_save_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path, folder, pipe = tmp_path / "history.json", tmp_path / "folder", tmp_path / "pipe.json"
    save(path, HISTORY)
    with pytest.raises(WrongWord):
        save(path, [3])  # type: ignore[list-item]
    folder.mkdir()
    os.mkfifo(pipe)
    nodes = [each.stat().st_ino for each in (folder, pipe)]
    for each in (folder, pipe):
        with pytest.raises(HistoryInvalid, match="is not a regular file, so it was not replaced"):
            save(each, HISTORY)
    for endless in (Path("/dev/zero"), pipe):
        with pytest.raises(HistoryInvalid, match="cannot be read: it is not a regular file"):
            load(endless)

    assert load(path) == HISTORY
    assert [each.stat().st_ino for each in (folder, pipe)] == nodes
    assert sorted(each.name for each in tmp_path.iterdir()) == ["folder", "history.json", "pipe.json"]


def test_load_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello")

    for each, words in [
        (path, r"notes.txt': line 1: not JSON"),
        (
            tmp_path / "none.json",
            r"none.json' cannot be read: No such file or directory; use the path of a saved history",
        ),
        (tmp_path, "cannot be read: "),
        ("a\0b", "cannot be read: "),
    ]:
        with raises_line(HistoryInvalid, match=words):
            load(each)


def test_the_published_schema_is_the_one_in_the_code() -> None:
    """Draft 2020-12. A change of it is seen in review; `python -m tests.core.write_schema` writes it."""
    assert PUBLISHED.read_text("utf-8") == rendered(), f"{PUBLISHED}: old; run `python -m tests.core.write_schema`"
    VALIDATOR.check_schema(schema())


@pytest.mark.parametrize(
    "change",
    [
        {"policy": ""}, {"id": ""}, {"role_hint_for_llm": 3}, {"schema": 0}, {"payload": {"kind": 3}},
        {"payload": {"kind": "parts"}}, {"payload": {"parts": []}},
        {"payload": {"kind": "parts", "parts": [{"text": "a"}]}},
        {"payload": {"kind": "parts", "parts": [{"kind": "text"}]}},
        {"payload": {"kind": "option_call", "option_name": "f"}},
        {"payload": {"kind": "option_call", "option_name": "f", "invocation_id": "1", "arguments": [1]}},
    ],
)  # fmt: skip
def test_the_schema_refuses_what_the_loader_refuses(change: dict[str, Any]) -> None:
    document = [{**json.loads(MESSAGE % "a"), **change}]

    with pytest.raises(HistoryInvalid):
        loads(json.dumps(document))
    assert not VALIDATOR.is_valid(document)


def test_saving_into_a_missing_folder_names_the_path_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(HistoryInvalid, match=r"^'nowhere/chat\.json' cannot be written: .*; create the folder first$"):
        save("nowhere/chat.json", [user("Hi.")])

    assert not list(tmp_path.iterdir())
