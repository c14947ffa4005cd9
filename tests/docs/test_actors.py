"""The page of the actors leaves out no state, no code and no model of what messages hold."""

from typing import get_args

from pydantic import BaseModel
from sabir_actors import TYPES, ErrorCode, data, state
from sabir_actors.actor import REMEMBERED

from tests.docs.actors import INNER, code_texts, picture
from tests.docs.pages import page
from tests.docs.test_reference import rows, section


def test_the_picture_shows_every_state() -> None:
    """D-24: it is drawn by hand, beside the moves that it shows."""
    assert [each for each in get_args(data.ThreadState) if each not in picture()] == []
    assert {after for _, after in state.MOVES.values()} | {"created"} == set(get_args(data.ThreadState))


def test_every_code_says_what_it_means() -> None:
    """A name alone is no reference."""
    assert code_texts().keys() == set(map(str, ErrorCode))


def test_every_model_that_stands_within_data_is_listed() -> None:
    """Those of messages have a heading each; those that are only inherited from have none of their own."""
    models = {each for each in vars(data).values() if isinstance(each, type) and issubclass(each, BaseModel)}
    of_types = {model for each in TYPES.values() for model in (each.data, each.response_data)}
    bases = {base for model in models for base in model.__bases__}

    assert models - of_types - bases - {data.Data} == set(INNER)


def test_every_event_of_a_thread_is_explained() -> None:
    """In the order in which a reader meets them, each once."""
    told = [name.strip("`") for name, *_ in rows(section(page("reference/actors.md").text, "## Events of a thread"))]

    assert sorted(told) == sorted(get_args(state.What))


def test_the_page_says_how_many_answers_an_actor_keeps() -> None:
    """Of messages that are delivered twice."""
    assert f"the latest {REMEMBERED:,} answers" in section(page("reference/actors.md").text, "## Duplicates")
