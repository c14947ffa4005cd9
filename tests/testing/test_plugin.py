"""The pytest plugin: suites that opt out silently are refused, failures are words, and the summary tells all."""

import importlib.metadata
from collections.abc import Mapping
from typing import Any

import pytest
import sabir
from sabir_testing import FULL, REFUSED, ProviderConformance
from sabir_testing.families.contract import ContractCases
from sabir_testing.families.requests import RequestCases
from sabir_testing.kit.failures import ConformanceFailure
from sabir_testing.kit.suite import new_in

from tests.testing.harness import Breakage, Delegate, registered

SUITE = """
import sabir
from sabir_testing.families.contract import ContractCases

class TestEcho(ContractCases):
    adapter = sabir.adapter("echo:small")
"""
REQUESTS = SUITE.replace("contract", "requests").replace("ContractCases", "RequestCases")
QUIET = ("-p", "no:cacheprovider", "-p", "no:asyncio", "-q")


def suite(**attributes: Any) -> type[ProviderConformance]:
    return type("TestAcme", (ProviderConformance,), {"adapter": sabir.adapter("echo:small"), **attributes})


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"test_messages_keep_their_order": None}, r"overrides test_messages_keep_their_order.*write xfail = "),
        ({"subject": None}, "overrides subject, which the kit uses internally"),
        ({"service": None}, "overrides service, which the kit uses internally"),
        ({"xfail": {"test_messages_keep_their_oder": "x"}}, "did you mean 'test_messages_keep_their_order'"),
        ({"xfail": {"test_messages_keep_their_order": " "}}, "has no reason; write why"),
        ({"capabilities": {"image": FULL}}, "capabilities contains the unknown name 'image'"),
        ({"capabilities": {"image.url": "full of it"}}, "use FULL, DOWNGRADED, REFUSED or UNKNOWN"),
        ({"prompts": {"textt": "Hello."}}, r"prompts contains the unknown name 'textt'.*did you mean 'text'"),
        ({"settings": {"kit": sabir.Settings()}}, "settings contains the unknown name 'kit'"),
        ({"adapter": "echo:small"}, "has the type str; use the result of sabir.adapter"),
        ({"capabilites": {}}, "capabilites is not an attribute of a suite; did you mean 'capabilities'"),
        ({"xfail": ["test_messages_keep_their_order"]}, "xfail has the type list; use a dict"),
        ({"cassettes": "cassettes"}, "cassettes has the type str; use a Path"),
        ({"examples": 0}, "examples is 0; use at least 1"),
    ],
)
def test_a_suite_that_leaves_something_out_in_silence_is_refused(attributes: Mapping[str, Any], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        suite(**attributes)


def test_an_inherited_override_is_refused_too() -> None:
    """A mixin, or a suite of a suite, leaves nothing out either."""
    mixin = type("Mixin", (), {"test_rendering_repeats": lambda self: None})

    with pytest.raises(TypeError, match="overrides test_rendering_repeats"):
        type("TestAcme", (mixin, ProviderConformance), {"adapter": sabir.adapter("echo:small")})
    with pytest.raises(TypeError, match="unknown name 'nonsense'"):
        type("TestMore", (suite(test_our_own=lambda self: None),), {"xfail": {"nonsense": "why"}})


@pytest.mark.parametrize(
    ("body", "arguments", "said"),
    [
        (
            SUITE.replace('    adapter = sabir.adapter("echo:small")\n', "    examples = 5\n"), (),
            "*TestEcho does not set `adapter`; write adapter = sabir.adapter(*",
        ),
        (
            REQUESTS + '    xfail = {"test_a_setting_is_looked_at[sed]": "why"}\n', (),
            "*xfail contains 'test_a_setting_is_looked_at?sed?', a test case that does not exist; use one of *",
        ),
        ("", ("--sabir-record", "-n2"), "*--sabir-record cannot run in several processes; add -n0*"),
    ],
    ids=["no adapter", "no such row", "recording in processes"],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_once(
    pytester: pytest.Pytester, body: str, arguments: tuple[str, ...], said: str
) -> None:
    pytester.makepyfile(test_echo=body)
    ran = pytester.runpytest_inprocess(*QUIET, *arguments)

    assert ran.ret == pytest.ExitCode.USAGE_ERROR
    ran.stderr.fnmatch_lines([said])


def test_a_skip_is_a_failure(pytester: pytest.Pytester) -> None:
    """Whoever skips a case, or all of them, is told how to opt out."""
    body = SUITE.replace("import sabir\n", "import pytest\nimport sabir\n", 1)
    pytester.makepyfile(test_echo=body.replace("class TestEcho", "@pytest.mark.skip\nclass TestEcho"))
    ran = pytester.runpytest_inprocess(*QUIET, "-k", "slash")

    ran.stdout.fnmatch_lines(
        ["TestEcho skips test_paths_begin_with_a_slash, which is not allowed; to opt out, write xfail = *"]
    )
    assert ran.ret == pytest.ExitCode.TESTS_FAILED


class Mistyped(Delegate):
    def encode_turn(self, turn: Any, scope: Any, losses: Any) -> Any:
        return self.base.encode_turn(turn.sides, scope, losses)


class Silent(Delegate):
    def encode_turn(self, turn: Any, scope: Any, losses: Any) -> Any:
        items = self.base.encode_turn(turn, scope, losses)
        return [{**item, "parts": item["parts"][:1]} for item in items]


@pytest.mark.parametrize(
    ("dialect", "words"),
    [
        (Mistyped, ["AttributeError: 'Turn' object has no attribute 'sides'", "test_plugin.py"]),
        (
            Silent,
            [
                "six texts by 'user' are not all in the body, or not in the order of the history",
                "1  user: text 'kit-turn-0.', text 'kit-turn-1.'",
                "the rendered request for {}:small:",
                "the losses:\n  none",
            ],
        ),
    ],
)
def test_a_failure_is_told_in_words(pytester: pytest.Pytester, dialect: type[Delegate], words: list[str]) -> None:
    """What is wrong, the history, what was rendered, the losses, the rule and the page; no line of the kit.

    An error of the author's code is told with its line.
    """
    with registered(Breakage(dialect=dialect)) as name:
        pytester.makepyfile(test_acme=REQUESTS.replace("echo", name))
        ran = pytester.runpytest_inprocess(*QUIET, "-k", "keep_their_order")

    said = ran.stdout.str()
    ran.assert_outcomes(failed=1)
    rule = "User messages, and the parts of a message, are sent in their order."
    page = "see docs/reference/conformance.md#test_messages_keep_their_order"
    for each in (*words, f"the rule:\n  {rule}", page):
        assert each.format(name) in said
    assert "Traceback" not in said
    assert "requests.py" not in said.replace("test_requests.py", "")
    assert len(said.splitlines()) < 60


def test_a_run_that_is_none_of_ours_loads_nothing_of_sabir(pytester: pytest.Pytester) -> None:
    """pytest loads the plugin at every start: it must cost others nothing, and says nothing."""
    pytester.makepyfile(
        "import sys\n\ndef test_theirs():\n    assert not {'sabir', 'pydantic', 'vcr'} & set(sys.modules)"
    )
    ran = pytester.runpytest_subprocess(*QUIET)

    ran.assert_outcomes(passed=1)
    assert "sabir" not in ran.stdout.str()


def test_what_is_opted_out_of_is_expected_to_fail_and_listed(pytester: pytest.Pytester) -> None:
    """A case that holds all the same fails: the entry has to go."""
    xfail = '    xfail = {"test_paths_begin_with_a_slash": "our reason, with a link"}\n'
    pytester.makepyfile(test_echo=SUITE + xfail)
    ran = pytester.runpytest_inprocess(*QUIET)

    outcomes = ran.parseoutcomes()
    assert set(outcomes) == {"failed", "passed"}
    assert outcomes["failed"] == 1
    ran.stdout.fnmatch_lines(
        ["test_paths_begin_with_a_slash passes now; remove *from TestEcho.xfail*our reason, with a link)"]
    )


def test_the_summary_tells_what_was_seen(pytester: pytest.Pytester) -> None:
    body = REQUESTS + (
        '    xfail = {"test_a_medium_is_sent_or_reported[image-url]": "a reason that is long enough to be broken"}\n'
    )
    body += '    capabilities = {"image.url": __import__("sabir_testing").FULL}\n'
    pytester.makepyfile(test_echo=body)
    ran = pytester.runpytest_inprocess(*QUIET)
    summary = ran.stdout.str().partition("sabir conformance")[2].splitlines()[1:-1]

    assert summary[0].startswith("TestEcho: ")
    assert summary[0].endswith("passed, 1 expected to fail")
    assert any(line.startswith("  full       later_system, option_choice.auto") for line in summary)
    assert "    test_a_medium_is_sent_or_reported[image-url]: a reason that is long enough" in summary
    assert max(map(len, summary)) <= 80


@pytest.mark.parametrize(("kit", "outcome"), [("0.7.3", "passed"), ("0.8.0", "failed")])
def test_a_new_case_warns_for_one_minor_release(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, kit: str, outcome: str
) -> None:
    """An update within a minor release breaks nobody's build; the summary says what will fail from the next one on."""

    class Newest(RequestCases):
        family = "newest"

        @new_in("0.7")
        def test_something_new(self) -> None:
            """A rule that came in 0.7."""
            raise ConformanceFailure("it does not hold here")

    from tests.testing import harness

    monkeypatch.setattr(importlib.metadata, "version", lambda name: kit)
    monkeypatch.setattr("sabir_testing.plugin.version", lambda name: kit)
    monkeypatch.setitem(harness.CURRENT, "suite", type("TestEcho", (Newest,), {"adapter": sabir.adapter("echo:small")}))
    pytester.makepyfile(test_suite="from tests.testing.harness import CURRENT\n\nTestSuite = CURRENT['suite']\n")
    ran = pytester.runpytest_inprocess(*QUIET, "-k", "something_new")

    ran.assert_outcomes(**{outcome: 1})
    assert ("new cases that failed (only a warning" in ran.stdout.str()) is (outcome == "passed")
    assert "it does not hold here" in ran.stdout.str()


def test_a_capability_that_is_declared_wrongly_fails_with_what_to_declare(pytester: pytest.Pytester) -> None:
    """The author reads what was seen, and the entry that would be true."""
    declared = {"capabilities": {"video.url": FULL, "image.url": REFUSED}}
    with registered(Breakage()) as name:
        made = type("TestAcme", (RequestCases,), {"adapter": sabir.adapter(f"{name}:small", api_key="k"), **declared})
        from tests.testing.harness import run

        said = {each.name: each.said for each in run(pytester, made) if each.failed}

    assert set(said) == {"test_a_medium_is_sent_or_reported[video-url]", "test_a_medium_is_sent_or_reported[image-url]"}
    assert "declare capabilities = {'image.url': FULL}" in said["test_a_medium_is_sent_or_reported[image-url]"]


def test_families_know_each_other_by_name_only() -> None:
    """A name that two families give to a case would hide one of them."""
    families = [each for each in ProviderConformance.__mro__ if vars(each).get("family")]
    names = [name for family in families for name in vars(family) if name.startswith("test_")]

    assert len(names) == len(set(names))
    assert len({family.family for family in families}) >= 8
    assert issubclass(ProviderConformance, ContractCases)


SCRIPTED = """
    import pytest
    import sabir
    from sabir_testing.scripted import always, calls

    def test_used_up(scripted):
        assert scripted("Hi").complete_sync("Hi").text == "Hi"

    def test_left_over(scripted):
        scripted(calls(weather={}), "Bye").complete_sync("What now?")
        scripted("Hi", model="scripted:one").complete_sync("Hi")

    def test_one_too_many(scripted):
        llm = scripted("Hi")
        for _ in range(2):
            try:
                llm.complete_sync("Hi")
            except Exception:
                pass

    def test_failed_anyhow(scripted):
        scripted("Hi")
        assert 1 == 2

    def test_never_ends(scripted):
        scripted(always("Hi"))
"""


def test_the_fixture_fails_a_test_that_does_not_use_up_its_script(pytester: pytest.Pytester) -> None:
    """It fails as a test does, with one line; one that failed by itself says only that."""
    pytester.makepyfile(SCRIPTED)

    result = pytester.runpytest("-p", "no:asyncio", "-rN")

    result.assert_outcomes(passed=2, failed=3)
    result.stdout.fnmatch_lines_random(
        [
            "the program did not request 1 of 2 scripted answers: 'Bye'. All requests: request 1: 'What now?' *",
            "the script has 1 answer, but the program sent request 2: 'Hi' (1 message); *",
            "*assert 1 == 2",
        ]
    )
    assert result.stdout.str().count("did not request") == 1
