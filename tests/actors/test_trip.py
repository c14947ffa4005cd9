"""One program, one thread, two vendors' wires and a change of model: on the embedded server, and recorded."""

from pathlib import Path

from sabir_actors.data import ThreadResult
from sabir_testing.cassettes import provenance_of, replaying

from tests.actors.trip import CHAIN, GPT, RECORDED, program, shell


def check(outcome: tuple[ThreadResult, dict[str, str]]) -> None:
    """Each phase asked the model that it was to ask, the last one the other model; the thread came to its end."""
    result, models = outcome
    assert result.status == "completed" and result.output is not None and result.output["response"]
    assert models == {"look": "anthropic:smollm2", "answer": GPT, "close": GPT}


async def test_the_program_on_its_recording(tmp_path: Path) -> None:
    """CH-28: the requests are those that were recorded, each is asked for, and nothing else is."""
    assert "not a vendor's own service" in provenance_of(RECORDED)["server"]
    with shell(), replaying(RECORDED) as cassette:
        check(await program(tmp_path))
        assert cassette.play_count == len(CHAIN.phases)
