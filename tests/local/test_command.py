"""`sabir local` says which models are here, how large and from where; `sabir local fetch FILE` makes one more known."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from sabir_local.models import VARIABLE, WeightsMissing, find_weights
from sabir_local.server import LocalServer

from tests.cli.command import error_line, run


@pytest.fixture
def user(tmp_path: Path) -> Mapping[str, str]:
    """The variables of a user whose cache is empty and who names a file of few bytes as the embedded model."""
    weights = tmp_path / "few.gguf"
    weights.write_bytes(b"GGUF" + bytes(2_000_000))
    return {VARIABLE: str(weights), "XDG_CACHE_HOME": str(tmp_path / "cache")}


def test_each_model_is_shown_with_its_size_its_file_and_its_source(user: Mapping[str, str], tmp_path: Path) -> None:
    large = tmp_path / "Large-9B.gguf"
    large.write_bytes(b"GGUF")
    known = run("local", "fetch", str(large), env=user)
    listed = run("local", env=user)
    document = json.loads(run("local", "--json", env=user).stdout)

    assert known.stdout.decode().splitlines() == ["local:Large-9B  0 MB", f"  {large}", "  by `sabir local fetch FILE`"]
    assert listed.stdout.decode().splitlines() == [
        *("local:smollm2  2 MB", f"  {user[VARIABLE]}", f"  by the variable {VARIABLE}"),
        *known.stdout.decode().splitlines(),
    ]
    assert (listed.stderr, known.stderr) == (b"", b"")
    assert [(row["model"], row["file"], row["bytes"]) for row in document] == [
        ("local:smollm2", user[VARIABLE], 2_000_004),
        ("local:Large-9B", str(large), 4),
    ]


def test_what_is_here_is_not_fetched_again(user: Mapping[str, str], tmp_path: Path) -> None:
    try:
        found = find_weights()
    except WeightsMissing as error:
        pytest.skip(f"no weights: {error}")
    fetched = tmp_path / "cache" / "sabir" / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    again = [run("local", "fetch", env=user)]
    fetched.parent.mkdir(parents=True)
    fetched.hardlink_to(found) if found.stat().st_dev == fetched.parent.stat().st_dev else fetched.symlink_to(found)
    again.append(run("local", "fetch", env=user))

    assert [each.returncode for each in again] == [0, 0]
    assert [each.stderr.decode() for each in again] == [
        "nothing to download: the model is already on this machine\n"
    ] * 2
    assert str(fetched) in again[1].stdout.decode()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("fetch", "missing.gguf"), "the command line names 'missing.gguf', which is not a file; use a .gguf file"),
        (("fetch", "text.gguf"), "the command line names 'text.gguf', which is not a GGUF file; use a .gguf file"),
        (("fetch", "--name", "x"), "--name needs your own file: sabir local fetch FILE.gguf --name NAME"),
        (
            ("list", "few.gguf"),
            "`sabir local list` accepts no file or --name; to add your own file: sabir local fetch FILE.gguf",
        ),
        (
            ("fetch", "few.gguf", "--name", "a/b"),
            "'a/b' cannot be the name of your model; choose another name with --name",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    user: Mapping[str, str], tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    (tmp_path / "text.gguf").write_text("hello")
    finished = run("local", *arguments, env=user, cwd=tmp_path)

    assert (finished.returncode, finished.stdout) == (2, b"")
    assert error_line(finished).startswith(says)


def test_a_model_is_loaded_by_the_name_it_was_given_and_the_command_says_how_large_it_is(
    server: LocalServer, tmp_path: Path
) -> None:
    user = {"XDG_CACHE_HOME": str(tmp_path)}
    run("local", "fetch", str(find_weights()), "--name", "mine", env=user)
    spoken = run("chat", "-m", "local:mine", "Hello!", env=user)
    quiet = run("chat", "-m", "local:mine", "Hello!", "--json", env=user)

    assert (spoken.returncode, quiet.returncode, quiet.stderr) == (0, 0, b"")
    assert spoken.stderr.decode().splitlines()[0] == f"loading mine, 98 MB, from {find_weights().resolve()}"
    assert spoken.stdout


def test_a_missing_model_names_the_command_that_brings_it(user: Mapping[str, str]) -> None:
    finished = run("chat", "-m", "local:qwen", "Hello!", env={**user, VARIABLE: ""})

    assert finished.returncode == 4
    assert "`sabir local fetch FILE.gguf --name NAME` adds a file" in error_line(finished)
