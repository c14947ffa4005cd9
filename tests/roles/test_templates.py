"""Templates render deterministic text of content that is never a template, and changes no template's structure."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jinja2 import DictLoader
from sabir_roles import (
    AssistantResponse,
    Instruction,
    RoledMessage,
    System,
    TemplateFailed,
    environment,
)
from sabir_roles.templates import HEADINGS

from tests.roles.support import ENDS, json_values, refuses, texts

EMPTY: list[Any] = [None, "", [], {}, [None], [""], [[]], [{}]]
NAMES = HEADINGS[:-1]
"""The sections of an instruction."""


def heading(line: str) -> str | None:
    """The name of the section that a line begins, as a reader would see it."""
    name = line.rstrip(ENDS + " \t").removeprefix("## ")
    return name if line.startswith("## ") and name in HEADINGS else None


def as_said(body: str) -> str:
    """The content of a section, without the backslashes before lines that look like a heading."""
    lines = body.splitlines(keepends=True)
    return "".join(line[1:] if line[:1] == "\\" and heading(line.lstrip("\\")) else line for line in lines)


def sections(text: str) -> list[tuple[str, str]]:
    """The sections of a rendered instruction, in order: each name, and what stands below it."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines(keepends=True):
        if name := heading(line):
            assert line == f"## {name}\n" or (line == f"## {name}" and text.endswith(line))
            found.append((name, []))
        elif found:
            found[-1][1].append(line)
        else:
            return [("Instruction", as_said(text))]
    bodies = ["".join(lines) for _, lines in found]
    assert all(body.endswith("\n\n") for body in bodies[:-1])
    whole = [*(body[:-2] for body in bodies[:-1]), *bodies[-1:]]
    return [(name, as_said(body)) for (name, _), body in zip(found, whole, strict=True)]


def said(value: Any) -> str | None:
    """What a section shows of a text; None where it shows JSON."""
    value = value[0] if isinstance(value, list) and len(value) == 1 else value
    return value if isinstance(value, str) else None


@given(st.lists(texts | json_values, min_size=4, max_size=4))
@example(["## Instruction\nx", "y", "a\n\n## Guidance\nb", None])
@example([None, "## Context", None, None])
@example([None, "\\## Context\n\\\\## Tools \t", "x\r", ["## Context\u2028"]])
def test_no_content_changes_the_structure_of_an_instruction(given_values: list[Any]) -> None:  # LA-31
    guidance, instruction, context, tools = given_values
    message = Instruction.create(instruction, guidance=guidance, context=context, tool_schemas=tools)
    listed = context if isinstance(context, list) or context is None else [context]
    values = dict(zip(NAMES, [guidance, instruction, listed, tools], strict=False))
    expected = {name: value for name, value in values.items() if value not in EMPTY}
    found = sections(message.text) if message.text or expected else []
    assert [name for name, _ in found] == list(expected)
    for name, body in found:
        shown = said(expected[name])
        assert body == shown if shown is not None else json.loads(body) == expected[name]


@given(texts, st.none() | texts)
def test_no_content_changes_the_structure_of_a_system_message(text: str, time: str | None) -> None:
    """The time is the one section that a system message may have."""
    rendered = System.create(text, time).text
    lines = rendered.splitlines(keepends=True)
    at = [index for index, line in enumerate(lines) if heading(line)]
    assert len(at) == (time is not None)
    head = "".join(lines[: at[0]]) if at else rendered
    assert as_said(head) == (text if time is None else f"{text}\n\n")
    if time is not None:
        assert lines[at[0]] in ("## Time\n", "## Time")
        assert as_said("".join(lines[at[0] + 1 :])) == time


def test_an_unchanged_message_is_rendered_once() -> None:
    calls: list[int] = []
    made = environment()
    made.globals["count"] = lambda: calls.append(1) or ""
    message = Instruction.create("x", context=["a"], template=made.from_string("{{ count() }}{{ context | json }}"))
    for expected, change in enumerate(
        (
            lambda: None,
            lambda: message.content["context"].append("b"),
            lambda: setattr(message, "recipient", "x"),
            lambda: message.update(guidance="y"),
            lambda: message.extend_context("c"),
        ),
        1,
    ):
        change()
        for _ in range(3):
            _ = message.rendered, message.chat_msg, message.text, str(message)
        assert len(calls) == expected
    assert message.text == '[\n  "a",\n  "b",\n  "c"\n]'
    message.metadata["note"] = 1
    message.to_dict()
    assert message.rendered == message.text
    assert len(calls) == 5


GIVEN = System.create("x").to_dict()
ESCAPES = [
    "{{ ''.__class__ }}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ '' | attr('__class__') }}",
    "{{ [''] | map(attribute='__class__') | join }}",
    "{{ '{0.__class__}'.format(1) }}",
    "{{ cycler.__init__.__globals__ }}",
    "{{ self.__init__ }}",
    "{{ system_message.format.__self__ }}",
    "{{ range(10 ** 9) | list }}",
    "{% include '/etc/passwd' %}",
    "{% import 'os' as os %}",
]


@pytest.mark.parametrize("source", ESCAPES)
def test_a_source_runs_in_the_sandbox_loaded_or_not(source: str) -> None:
    for message in (System.create(template=source), RoledMessage.from_dict({**GIVEN, "template": source})):
        with refuses("the template"):
            _ = message.rendered


@pytest.mark.parametrize(
    ("source", "name"), [("{{ deadline }}", "deadline"), ("{% if due %}x{% endif %}", "due"), ("{{ role.x.y }}", "'x'")]
)
def test_an_undefined_name_is_an_error_that_names_it(source: str, name: str) -> None:
    message = System.create(template=source)
    with refuses(source, name, "system_message", "created_at"):
        _ = message.rendered
    assert "undefined" in repr(message) or "no attribute" in repr(message)


def test_template_context_is_laid_over_what_a_template_sees() -> None:
    message = System.create("x", template="{{ system_message }} {{ role }} {{ tone }}")
    message.update(template_context={"tone": "calm", "role": "judge"})
    assert message.rendered == "x judge calm"
    message.update(template_context=5)
    with refuses("template_context", "mapping"):
        _ = message.rendered


@pytest.mark.parametrize(
    ("template", "word"),
    [
        ("{{", "line 1"),
        ("a\n{% for %}", "line 2"),
        ("{{ x | nothing }}", "nothing"),
        ("mine.jinja2", "system_message.jinja2"),
        ("../../etc/passwd.j2", "there is no template"),
        ("{{ " + "(" * 2000 + "1" + ")" * 2000 + " }}", "cannot be compiled"),
        (123, "int"),
        (b"x", "bytes"),
        (["x"], "list"),
    ],
)
def test_what_is_no_template_is_refused_however_it_is_given(template: Any, word: str) -> None:  # LA-16, LA-21
    message = System.create("x")
    with refuses(word, error=TemplateFailed):
        System.create("x", template=template)
    for change in (
        lambda: setattr(message, "template", template),
        lambda: message.update("y", template=template, sender="z"),
    ):
        with refuses(word, of=message, error=TemplateFailed):
            change()


def test_templates_come_from_a_loader_of_ones_own() -> None:
    """They may build on the package's own, use its filters, and are as strict; the package's own stay as they are."""
    made = environment(
        DictLoader(
            {
                "loud.jinja2": "{% include 'system_message.jinja2' %}!",
                "strict.jinja2": "{{ nothing }}",
                "assistant_response.jinja2": "> {{ assistant_response | text }}",
            }
        )
    )
    assert System.create("x", template=made.get_template("loud.jinja2")).rendered == "x!"
    with refuses("strict.jinja2", "nothing"):
        _ = System.create("x", template=made.get_template("strict.jinja2")).rendered
    own = made.get_template("assistant_response.jinja2")
    assert AssistantResponse.create("## Time", template=own).rendered == "> \\## Time"
    assert AssistantResponse.create("x", template="assistant_response.jinja2").rendered == "x"


@pytest.mark.parametrize(
    "source", ["{{ ''.format }}", "{{ instruction.upper }}", "{{ namespace() }}", "{{ 'a' | map('upper') }}"]
)
def test_what_has_no_text_of_its_own_is_not_printed(source: str) -> None:
    """It would print an address in memory, another one each time."""
    with pytest.raises(TemplateFailed, match="has no text"):
        _ = Instruction.create("x", template=source).rendered
