"""The fixture `loss_lock`: a test fails if a target loses more than the lock file lists."""

import json

import pytest

from tests.testing.loss_locks.scratch import scratch

QUIET = ("-p", "no:cacheprovider", "-p", "no:asyncio", "-q")
BODY = """
import sabir

def test_tower(loss_lock):
    loss_lock.check([sabir.user("What is this?", sabir.image(b"\\x89PNG\\r\\n\\x1a\\n" + bytes(30)))], "scratch:small")
"""


def test_a_changed_table_fails_the_test_until_the_file_is_updated(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_prompts=BODY)
    with scratch():
        assert pytester.runpytest_inprocess(*QUIET, "--sabir-update-losses").ret == 0
        assert pytester.runpytest_inprocess(*QUIET).ret == 0
    with scratch(accepts_images=False):
        failed = pytester.runpytest_inprocess(*QUIET)
        failed.assert_outcomes(failed=1)
        failed.stdout.fnmatch_lines(
            [
                "new loss at scratch:small: test_tower, message 1, parts?1?: downgraded: *",
                "not in */losses.lock; change the conversation, or run pytest with --sabir-update-losses to accept",
            ]
        )
        assert pytester.runpytest_inprocess(*QUIET, "--sabir-update-losses").ret == 0
    with scratch():
        passed = pytester.runpytest_inprocess(*QUIET)
        passed.assert_outcomes(passed=1)
        passed.stdout.fnmatch_lines(
            [
                "*sabir losses*",
                "no longer lost at scratch:small: test_tower, message 1, parts?1?: downgraded: *",
                "to bring the lock files up to date, run pytest with --sabir-update-losses",
            ]
        )


def test_the_file_is_next_to_the_tests_or_where_the_ini_option_says(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(**{"unit/test_prompts": BODY})
    with scratch():
        pytester.runpytest_inprocess(*QUIET, "--sabir-update-losses")
        assert list(json.loads((pytester.path / "unit/losses.lock").read_text())["histories"]) == ["test_tower"]

        pytester.makeini("[pytest]\nsabir_loss_lock = all.lock\n")
        pytester.runpytest_inprocess(*QUIET, "--sabir-update-losses")
    names = list(json.loads((pytester.path / "all.lock").read_text())["histories"])
    assert names == ["unit/test_prompts.py::test_tower"]


@pytest.mark.parametrize(
    ("checks", "reason"),
    [
        ('loss_lock.check("Hi", "echo:m")', "there is no lock file *; run pytest with --sabir-update-losses*"),
        ('loss_lock.check("Hi", "ecko:m")', "*provider 'ecko' is not installed*"),
        (
            'loss_lock.check("Hi", "echo:m", name="a"); loss_lock.check("Ho", "echo:m", name="a")',
            "*test_it a at echo:m is checked twice; pass another name= to each check*",
        ),
    ],
    ids=["no file", "no provider", "one name twice"],
)
def test_a_check_that_cannot_be_made_says_why(pytester: pytest.Pytester, checks: str, reason: str) -> None:
    pytester.makepyfile(f"def test_it(loss_lock):\n    {checks}\n")
    flags = ["--sabir-update-losses"] if "twice" in reason else []
    ran = pytester.runpytest_inprocess(*QUIET, *flags)

    ran.assert_outcomes(failed=1)
    ran.stdout.fnmatch_lines([f"*{reason}"])


def test_an_adapter_options_and_settings_are_rendered(pytester: pytest.Pytester) -> None:
    """And several conversations of one test have names."""
    pytester.makepyfile("""
        import sabir

        def test_it(loss_lock):
            llm = sabir.adapter("anthropic:claude-sonnet-5", api_key="test")
            loss_lock.check("Hi", llm, settings=sabir.Settings(seed=3), name="seeded")
            loss_lock.check("Hi", llm, options=[sabir.web_search()], name="searching")
    """)
    assert pytester.runpytest_inprocess(*QUIET, "--sabir-update-losses").ret == 0

    histories = json.loads((pytester.path / "losses.lock").read_text())["histories"]
    assert list(histories) == ["test_it searching", "test_it seeded"]
    (target,) = histories["test_it seeded"]
    assert target == "anthropic.messages:claude-sonnet-5"
    entry = histories["test_it seeded"][target]
    assert entry["settings"] == {"seed": 3}
    assert "settings.seed" in [loss["path"] for loss in entry["losses"]]


def test_an_update_in_several_processes_is_refused(pytester: pytest.Pytester) -> None:
    ran = pytester.runpytest_inprocess(*QUIET, "--sabir-update-losses", "-n2")

    assert ran.ret == pytest.ExitCode.USAGE_ERROR
    ran.stderr.fnmatch_lines(["*--sabir-update-losses cannot run in several processes; add -n0*"])
