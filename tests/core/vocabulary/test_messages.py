"""The message: atomic, deeply immutable, of exactly three kinds."""

import contextlib
import copy
import functools
import inspect
import json
import pickle
from collections.abc import Callable, Iterator
from typing import Any
from uuid import RFC_4122, UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError
from sabir.base.models import Frozen
from sabir.contract.dialect import Rendering
from sabir.errors import HistoryInvalid
from sabir.hooks.builders import Step, group_steps
from sabir.options.option import Option, answer_sync, unanswered
from sabir.vocabulary.constructors import user
from sabir.vocabulary.history import dumps, loads
from sabir.vocabulary.messages import Message, OptionCallPayload, OptionResultPayload, Origin, PartsPayload
from sabir.vocabulary.parts import Citation, MediaPart, OpaquePart, ReasoningPart, RefusalPart, TextPart, UnknownPart
from sabir.vocabulary.reply import Usage
from sabir.vocabulary.settings import ResponseFormat, Settings, Target

from tests.core.samples import EVERY_KIND, messages
from tests.core.support import raises_line

HELLO = PartsPayload(parts=(TextPart(text="hello"),))


# --- law 11: deep immutability ----------------------------------------------------------------------------------------


def reachable(value: Any) -> Iterator[Any]:
    """Every model, mapping and sequence that a message is made of, views included."""
    yield value
    if isinstance(value, BaseModel):
        names = [*type(value).model_fields, *_views(type(value)), "__pydantic_extra__"]
        inner = [getattr(value, name) for name in names]
    elif isinstance(value, dict):
        inner = list(value.values())
    elif isinstance(value, list | tuple):
        inner = list(value)
    else:
        inner = []
    for each in inner:
        if isinstance(each, BaseModel | dict | list | tuple):
            yield from reachable(each)


@functools.cache
def _views(kind: type[BaseModel]) -> list[str]:
    """Names of a model's own properties, cached ones included."""
    ours = {name for base in kind.__mro__ if issubclass(base, Frozen) for name in vars(base)}
    found = ((name, inspect.getattr_static(kind, name)) for name in sorted(ours))
    return [name for name, member in found if isinstance(member, property | functools.cached_property)]


LIST_CHANGES: dict[str, tuple[Any, ...]] = {
    "__setitem__": (slice(0, 0), ["changed"]), "__delitem__": (slice(None),), "__iadd__": ([1],), "__imul__": (2,),
    "append": (1,), "clear": (), "extend": ([1],), "insert": (0, 1), "pop": (), "remove": (1,), "reverse": (),
    "sort": (),
}  # fmt: skip


def changes(value: Any) -> Iterator[tuple[str, Callable[[], object]]]:
    """Everything that might change a value in place, save `__dict__`, `object.__setattr__` and its like."""
    if isinstance(value, BaseModel):
        aliases = [field.alias for field in type(value).model_fields.values() if field.alias]
        views = _views(type(value))
        for name in [*type(value).model_fields, *aliases, *views, "anything", "_hidden", "__pydantic_extra__"]:
            yield f"set {name}", lambda name=name: setattr(value, name, "changed")
            yield f"delete {name}", lambda name=name: delattr(value, name)
    elif isinstance(value, dict):
        key = next(iter(value), "k")
        yield "[]=", lambda: value.__setitem__(key, "changed")
        yield "del []", lambda: value.__delitem__(key)
        yield "|=", lambda: value.__ior__({"k": 1})
        yield "clear", lambda: value.clear()
        yield "pop", lambda: value.pop(key, None)
        yield "popitem", lambda: value.popitem()
        yield "setdefault", lambda: value.setdefault("new", 1)
        yield "update", lambda: value.update({"new": 1})
        yield "attribute", lambda: setattr(value, "anything", 1)
    elif isinstance(value, list):
        for name, arguments in LIST_CHANGES.items():
            yield name, lambda name=name, arguments=arguments: getattr(value, name)(*arguments)
        yield "attribute", lambda: setattr(value, "anything", 1)


def refuses(change: Callable[[], object]) -> bool:
    try:
        change()
    except (TypeError, AttributeError, ValidationError):
        return True
    return False


NEWER = {
    "policy": "u", "tags": [{"a": [1]}],
    "payload": {"kind": "parts", "parts": [{"kind": "hologram", "at": [1, {"x": 2}]}]},
}  # fmt: skip


@pytest.mark.parametrize("message", [*EVERY_KIND, *loads(json.dumps([NEWER]))], ids=range(len(EVERY_KIND) + 1))
def test_nothing_of_a_message_can_be_changed(message: Message) -> None:
    """Law 11, PJ-01, UP-02: no attribute, no item, no nested value, of no view, nor of what a newer writer added."""
    before = message.model_dump_json()
    allowed = [
        f"{type(value).__name__}: {what}"
        for value in list(reachable(message))
        for what, change in changes(value)
        if not refuses(change)
    ]

    assert allowed == []
    assert message.model_dump_json() == before


def force(view: Any) -> None:
    if isinstance(view, dict):
        for item in list(view.values()):
            force(item)
        dict.update(view, forced="1")
    elif isinstance(view, list):
        for item in list(view):
            force(item)
        list.append(view, "forced")


@pytest.mark.parametrize(
    "held",
    [
        *(value for message in EVERY_KIND for value in reachable(message) if isinstance(value, Frozen)),
        Settings(vendor={"acme": {"tier": [1]}}, extra_body={"x": [1]}, extra_headers={"x-trace": "1"}),
        ResponseFormat(name="trip", schema={"type": "object", "properties": {}}),
        Option(name="f"),
        Usage(details={"cached": [1]}),
        Rendering(
            target=Target(provider="p", dialect="p.d"), path="/", body_bytes=b'{"a":[1]}',
            headers={"x": "1"}, option_names={"f_": "f"},
        ),
    ],
    ids=lambda held: type(held).__name__,
)  # fmt: skip
def test_what_is_forced_upon_a_view_reaches_that_view_alone(held: Frozen) -> None:
    """Law 11: `dict.update` and its like change nothing that is dumped, compared or seen again."""
    seen, dumped = [getattr(held, name) for name in _views(type(held))], held.model_dump_json()
    equal = type(held).model_validate_json(dumped) if type(held) is not UnknownPart else held
    kept = copy.deepcopy([_thawed(view) for view in seen])

    for view in seen:
        force(view)

    assert held.model_dump_json() == dumped
    assert held == equal
    assert [_thawed(getattr(held, name)) for name in _views(type(held))] == kept


def _thawed(view: Any) -> Any:
    return json.loads(json.dumps(view)) if isinstance(view, dict | list) else view


def test_building_a_view_again_changes_nothing() -> None:
    """Law 11: `__init__` is a method like others."""
    arguments = OptionCallPayload(invocation_id="1", option_name="f", arguments={"a": [], "b": {}}).arguments
    for view in (arguments, arguments["a"], arguments["b"]):
        with contextlib.suppress(TypeError):
            view.__init__([("k", 1)])

    assert arguments == {"a": [], "b": {}}


# --- fields -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        *((fields, "policy") for fields in ({"policy": None}, {"policy": ""})),
        *(({"role_hint_for_llm": hint}, "role_hint_for_llm") for hint in ("developer", "User", "", 1)),
        ({"id": ""}, "id"),
        ({"actor": "user"}, "Message has no field 'actor'; its fields are schema, id, policy"),
    ],
)  # fmt: skip
def test_fields_are_strict(fields: dict[str, Any], words: str) -> None:
    """PJ-02, PJ-03, PJ-07: a policy is required, the hint is one of four or None, and unknown fields are named."""
    with pytest.raises(ValidationError, match=words):
        Message(**{"policy": "p", "payload": HELLO, **fields})
    with pytest.raises(ValidationError, match="policy"):
        Message(payload=HELLO)  # type: ignore[call-arg]
    for hint in ("user", "assistant", "tool", "system", None):
        assert Message(policy="p", payload=HELLO, role_hint_for_llm=hint).role_hint_for_llm == hint


def test_half_a_character_is_in_no_message() -> None:
    half = "a\ud800"
    for make in (
        lambda: Message(policy=half, payload=HELLO),
        lambda: Message(policy="p", id=half, payload=HELLO),
        lambda: TextPart(text=half),
        lambda: ReasoningPart(text=half),
        lambda: RefusalPart(text=half),
        lambda: MediaPart(modality="image", url="https://example.org", prompt_hint=half),
        lambda: MediaPart(modality="image", url=f"data:,{half}"),
        lambda: OpaquePart(dialect="acme.wire", block=half),
        lambda: Citation(kind="page", title=half),
        lambda: OptionCallPayload(invocation_id="1", option_name=half),
        lambda: OptionCallPayload(invocation_id="1", option_name="f", raw_arguments=half),
        lambda: OptionResultPayload(invocation_id="1", option_name="f", result=half),
        lambda: Origin(provider="p", dialect="p.d", model=half),
        lambda: Target(provider="p", dialect="d", model=half),
        lambda: ResponseFormat(name=half, schema={}),
        lambda: ResponseFormat(name="n", schema={}, description=half),
        lambda: Option.from_schema("f", half, {}),
    ):
        with pytest.raises(ValueError, match=r"surrogate|unicode"):
            make()


@given(st.lists(messages, max_size=5), st.randoms())
def test_a_role_hint_changes_nothing_but_itself(history: list[Message], random: Any) -> None:
    """PJ-08, law 7: not what is unanswered, not what answers it, not the steps."""
    hints = ("user", "assistant", "tool", "system", None)
    shuffled = [message.model_copy(update={"role_hint_for_llm": random.choice(hints)}) for message in history]

    def ids(found: list[Message]) -> list[str]:
        return [message.id for message in found]

    assert ids(unanswered(history)) == ids(unanswered(shuffled))
    answers = [message.payload for message in answer_sync(history, [])]
    assert answers == [message.payload for message in answer_sync(shuffled, [])]
    assert [(step.step_num, ids(list(step.messages))) for step in group_steps(history)] == [
        (step.step_num, ids(list(step.messages))) for step in group_steps(shuffled)
    ]


def test_ids_are_those_of_uuid4() -> None:
    """UP-03: 122 random bits, so that nobody guesses one or makes it again."""
    made = [*(Message.new_id() for _ in range(500)), *(user("a").id for _ in range(500))]
    random_bits = [f"{int(each, 16):0128b}" for each in made]

    assert len(set(made)) == 1000
    assert {(UUID(each).version, UUID(each).variant, len(each)) for each in made} == {(4, RFC_4122, 32)}
    assert [at for at in range(128) if len({bits[at] for bits in random_bits}) == 1] == [48, 49, 50, 51, 64, 65]


def test_equality_includes_the_id_and_same_content_does_not() -> None:
    """Who said it where is no content either; the order of keys is none of either (D-01)."""
    message = user("a")
    again = message.model_copy(update={"id": "other", "origin": Origin(provider="p", dialect="p.d")})
    one, other = (
        OptionResultPayload(invocation_id="1", option_name="f", result=result)
        for result in ({"a": (1, 2), "b": {"y": 1, "x": 2}}, {"b": {"x": 2, "y": 1}, "a": [1, 2]})
    )

    assert (message == message.model_copy(), message != again, len({message, again})) == (True, True, 2)
    assert message.same_content(again)
    for differs in (user("b"), *(again.model_copy(update=update) for update in ({"step_num": 1}, {"policy": "p"}))):
        assert not message.same_content(differs)
    assert (one, hash(one)) == (other, hash(other))


def test_a_changed_copy_is_validated() -> None:
    """`model_copy(update=…)` takes field names and the names they are dumped under; nothing given is shared (PJ-01)."""
    given_arguments = {"a": [1]}
    call = OptionCallPayload(invocation_id="1", option_name="f", arguments=given_arguments)
    given_arguments["a"].append(2)

    assert call.model_copy(update={"arguments": {"b": 2}}).arguments == {"b": 2}
    assert call.model_copy(update={"option_name": "g"}).arguments == call.arguments == {"a": [1]}
    for update in ({"option_name": ""}, {"arguments": [1]}, {"zzz": 1}):
        with pytest.raises(ValidationError):
            call.model_copy(update=update)


def test_a_changed_copy_keeps_what_a_newer_writer_added() -> None:
    loaded = loads(
        '{"policy": "u", "tags": ["x"], "payload": {"kind": "parts", "parts": ['
        '{"kind": "text", "text": "a", "mood": "b"}, {"kind": "hologram", "of": 1}]}}'
    )[0]

    changed = loaded.model_copy(update={"step_num": 2})
    reused = Message(policy="v", payload=PartsPayload(parts=(*loaded.parts, TextPart(text="c"))))

    assert '"tags":["x"]' in dumps([changed])
    assert changed.payload == loaded.payload
    assert reused.parts[:2] == loaded.parts
    assert '{"kind":"hologram","of":1}' in dumps([reused])


@pytest.mark.parametrize("made", EVERY_KIND, ids=lambda made: made.kind)
def test_a_message_is_made_once(made: Message) -> None:
    """Law 11: neither `__init__` nor `__setstate__` makes another value of it."""
    before = made.model_dump_json()

    for again in (lambda: made.__init__(policy="x", payload=HELLO), lambda: made.__setstate__({"__dict__": {}})):
        with pytest.raises(TypeError, match="Message is immutable; make a changed copy with model_copy"):
            again()
    assert made.model_dump_json() == before
    assert pickle.loads(pickle.dumps(made)) == copy.deepcopy(made) == made


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    "hold",
    [
        lambda value: OptionCallPayload(invocation_id="1", option_name="f", arguments=value).arguments,
        lambda value: OptionResultPayload(invocation_id="1", option_name="f", result=value).result,
        lambda value: OpaquePart(dialect="acme.wire", block=value).block,
        lambda value: Settings(extra_body=value).extra_body,
    ],
    ids=["arguments", "result", "block", "extra_body"],
)
def test_a_value_may_be_nested_a_hundred_levels_deep(hold: Callable[[Any], Any]) -> None:
    """What is deeper is refused where it is given, not by a RecursionError where it is looked at."""
    assert hold(nested(100)) == nested(100)
    with pytest.raises(ValueError, match="is nested deeper than 100 levels"):
        hold(nested(101))


@pytest.mark.parametrize("levels", [200, 400, 600, 800, 990])
def test_a_history_nested_too_deeply_is_none(levels: int) -> None:
    for field in ("result", "zzz"):
        call = f'"kind":"option_result","invocation_id":"1","option_name":"f","{field}":{"[" * levels}{"]" * levels}'
        with raises_line(HistoryInvalid, match=r"nested (deeper than 100 levels|too deeply)|recursion"):
            loads(f'[{{"policy":"f","payload":{{{call}}}}}]')


# --- kinds ------------------------------------------------------------------------------------------------------------


def test_exactly_three_kinds() -> None:
    """PJ-09, PJ-13: each message is one of them, and says which."""
    kinds = {message.kind for message in EVERY_KIND}
    parts, call, value, success, failure = EVERY_KIND

    assert kinds == {"parts", "option_call", "option_result"}
    assert [bool(message.call) for message in EVERY_KIND] == [False, True, False, False, False]
    assert [bool(message.result) for message in EVERY_KIND] == [False, False, True, True, True]
    assert (parts.parts, call.parts, failure.parts) == (parts.payload.parts, (), ())  # type: ignore[union-attr]
    assert success.parts
    assert not value.parts
    for payload in (None, [HELLO, HELLO], {"kind": "parts", "parts": []}, {**HELLO.model_dump(), "option_name": "f"}):
        with pytest.raises(ValidationError, match="payload"):
            Message(policy="p", payload=payload)  # type: ignore[arg-type]


def test_a_wrong_tag_names_the_discriminator() -> None:
    """PJ-10, PJ-11, PJ-12."""
    for kind in ("action_call", "action_result", "text"):
        with pytest.raises(ValidationError, match=f"Input tag '{kind}' found using 'kind'.*'parts', 'option_call'"):
            Message.model_validate({"policy": "p", "payload": {"kind": kind}})
    with pytest.raises(ValidationError, match="Unable to extract tag using discriminator 'kind'"):
        Message.model_validate({"policy": "p", "payload": {"option_name": "f"}})
    with pytest.raises(ValidationError, match=r"invocation_id\n.*Field required"):
        Message.model_validate({"policy": "p", "payload": {"kind": "option_call", "option_name": "f"}})


# --- option calls and results -----------------------------------------------------------------------------------------


def test_a_call_is_of_its_ids_and_any_json_object() -> None:
    """PJ-28, PJ-33: core never checks arguments against a schema."""
    call = OptionCallPayload(invocation_id="1", option_name="f", arguments={"b": 1, "a": [None, {"x": 0.5}]})

    assert call.arguments == {"b": 1, "a": [None, {"x": 0.5}]}
    assert call.arguments_json == '{"a":[null,{"x":0.5}],"b":1}'
    assert OptionCallPayload(invocation_id="1", option_name="f").arguments == {}
    for arguments in ([1], "{}", None, 3, {"a": float("nan")}, {"a": "\ud800"}):
        with pytest.raises(ValidationError):
            OptionCallPayload(invocation_id="1", option_name="f", arguments=arguments)
    for fields in ({"invocation_id": ""}, {"option_name": ""}):
        with pytest.raises(ValidationError):
            OptionCallPayload(**{"invocation_id": "1", "option_name": "f", **fields})


FAILED = {"is_error": True, "error_type": "e", "error_message": "m"}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        *((fields, "an error result needs") for fields in (
            {"is_error": True}, {"is_error": True, "error_type": "e"}, {"is_error": True, "error_message": "m"})),
        *((fields, "a successful result cannot have") for fields in (
            {"error_type": "e"}, {"error_message": "m"}, {"retryable": False})),
        ({"result": 1, **FAILED}, "an error result cannot have a `result`"),
        ({"result": 1, "parts": (TextPart(text="a"),)}, "a result cannot have both `parts` and a `result`"),
    ],
)  # fmt: skip
def test_a_result_says_one_thing(fields: dict[str, Any], reason: str) -> None:
    """PJ-30, PJ-32, D-04: a value, parts, or an error with a type and a message; by default the success of nothing."""
    with pytest.raises(ValidationError, match=reason):
        OptionResultPayload(invocation_id="1", option_name="f", **fields)
    bare = OptionResultPayload(invocation_id="1", option_name="f")
    assert (bare.result, bare.is_error, bare.error_type, bare.error_message, bare.retryable) == (
        None, False, None, None, None,
    )  # fmt: skip
    with pytest.raises(ValidationError, match="at least 1 item"):
        PartsPayload(parts=())  # PJ-39


# --- steps ------------------------------------------------------------------------------------------------------------


def test_steps_group_neighbours_and_reorder_nothing() -> None:
    """PJ-21, PJ-22, PJ-24: the order of events is the list's own."""
    history = [user(str(index), step_num=number) for index, number in enumerate([None, 1, 1, 2, 1, None])]
    steps = group_steps(history)

    assert [step.step_num for step in steps] == [None, 1, 2, 1, None]
    assert [message for step in steps for message in step.messages] == history
    assert steps[1] == Step(1, tuple(history[1:3]))
    assert group_steps([]) == []
