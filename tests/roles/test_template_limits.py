"""A stored template is limited in time and memory, whatever it does; an ordinary one is not."""

import tracemalloc
from time import monotonic

import pytest
from sabir_roles import Instruction, TemplateFailed, template_limits
from sabir_roles.templates import render

HOSTILE = [
    "{{ 'a' * 10**9 }}",
    "{{ 10**9 * 'a' }}",
    "{{ [0] * 10**9 }}",
    "{{ (10**9) ** (10**9) }}",
    "{% set ns = namespace(x='a') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
    "{% set ns = namespace(x='a') %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
    "{% set ns = namespace(x=2) %}{% for i in range(99) %}{% set ns.x = ns.x * ns.x %}{% endfor %}",
    "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
    "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
    "{% for i in range(100000) %}{% for j in range(100000) if j < 0 %}{% endfor %}{% endfor %}",
    "{% for i in range(100000) %}" + "x" * 100_000 + "{% endfor %}",
    "{% set y %}{% for i in range(100000) %}" + "x" * 100_000 + "{% endfor %}{% endset %}",
    "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(200) }}",
    "{% macro f(n) %}{{ caller() }}{{ caller() }}{% endmacro %}" + "{% call f(1) %}" * 30 + "x" + "{% endcall %}" * 30,
    "{% block b %}{% for i in 'ab' %}{{ self.b() }}{% endfor %}{% endblock %}",
    "{% for i in [[[1]]] recursive %}{% for j in range(9) %}{% endfor %}{{ loop([1, 2]) }}{% endfor %}",
    "{{ 'a'.center(10**9) }}",
    "{{ 'a'.ljust(10**9) }}",
    "{{ '1'.zfill(10**9) }}",
    "{{ ('\t' * 1000000).expandtabs(1000000) }}",
    "{{ ('a' * 1000000).replace('', 'b' * 1000000) }}",
    "{{ ('a' * 1000000).join(['b'] * 100000) }}",
    "{{ ('a' * 1000000).translate({97: 'b' * 1000000}) }}",
    "{{ (5).to_bytes(10**9, 'big') }}",
    "{{ '{:999999999}'.format(1) }}",
    "{{ '{:{w}}'.format(1, w=10**9) }}",
    "{{ '%999999999d' % 1 }}",
    "{{ '%*d' % (10**9, 1) }}",
    "{{ '%999999999d'|format(1) }}",
    "{{ '%*d'|format(10**9, 1) }}",
    "{{ '%(a(b))999999999d' % {'a(b)': 1} }}",
    "{{ ('{0}' * 10000).format('a' * 1000000) }}",
    "{{ ('%(a)s' * 10000) % {'a': 'b' * 1000000} }}",
    "{{ ('%(a)s' * 10000)|format(a='b' * 1000000) }}",
    "{{ ['a' * 1000000] * 10000 }}",
    "{{ (['a' * 1000000] * 10000) ~ '' }}",
    "{{ (['a' * 1000000] * 10000)|string }}",
    "{{ (['a' * 1000000] * 10000)|tojson }}",
    "{{ (['a' * 1000000] * 10000)|json }}",
    "{{ (['a' * 1000000] * 10000)|upper }}",
    "{{ '%s' % [['a' * 1000000] * 10000] }}",
    "{{ [['a' * 1000000] * 10000]|join }}",
    "{{ 'a'|center(10**9) }}",
    "{{ ('a\n' * 1000000)|indent(1000000) }}",
    "{{ ('a' * 1000000)|replace('a', 'b' * 1000000) }}",
    "{{ (['b'] * 100000)|join('a' * 1000000) }}",
    "{{ [1]|batch(10**9, 'x')|list }}",
    "{{ [1]|slice(10**9)|list }}",
    "{{ 2.5|round(10**9, 'ceil') }}",
    "{{ ('a ' * 1000000)|wordwrap(1, true, 'b' * 1000000) }}",
    "{% for i in range(1000) %}{{ [1] * 100000 }}{% endfor %}",
    "".join(f"{{% set a{n} = 'x' * 10000000 %}}" for n in range(20)),
]


@pytest.mark.parametrize("source", HOSTILE)
def test_a_hostile_template_is_ended_within_its_limits(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template_limits, "SECONDS", 1.0)
    tracemalloc.start()
    try:
        began = monotonic()
        with pytest.raises(TemplateFailed) as raised:
            render(source, {})
        seconds, (_, peak) = monotonic() - began, tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "\n" not in str(raised.value)
    assert seconds < 30  # thirty times the limit: tracing and a loaded machine take longer
    assert peak < 200_000_000


def test_a_template_with_much_content_is_rendered() -> None:
    source = "{% for i in range(1000) %}{{ '%05d' % i }} {{ (text ~ i)|center(20) }}\n{% endfor %}{{ long|text }}"
    lines = render(source, {"text": "a", "long": "b" * 2_000_000}).splitlines()

    assert lines[1] == "00001 " + "a1".center(20)
    assert len(lines[-1]) == 2_000_000


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{ 'Name: {}'.format('Ada') }}", "Name: Ada"),
        ("{{ '{{\"order 12345678\": {:>3}}}'.format(1) }}", '{"order 12345678":   1}'),
        ("{{ 'Order 12345678: **%s**' % 'tea' }}", "Order 12345678: **tea**"),
        ("{{ 'a: {%(b)5.2f} 100%%' % {'b': 1} }}", "a: { 1.00} 100%"),
    ],
)
def test_digits_and_signs_outside_of_a_width_are_allowed(source: str, text: str) -> None:
    assert render(source, {}) == text


def test_a_stored_message_with_a_hostile_template_is_refused_when_it_is_rendered() -> None:
    stored = Instruction.create("Hello").to_dict() | {"template": "{{ 'a' * 10**9 }}"}
    message = Instruction.from_dict(stored)

    with pytest.raises(TemplateFailed, match="creates more than 32,000,000 characters"):
        message.rendered  # noqa: B018 - the property renders
