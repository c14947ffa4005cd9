"""Phases are data: a chain is a list of phases, each with its instructions and the type of its answer.

    Chain("aeiou-y", (Phase("action", …), …, Phase("yield", …)))       the document's, AEIOUY_CHAIN
    Chain("review", (Phase("draft", …), Phase("critique", output=Critique), Phase("final", …)))

A phase gets the output of the previous phase. Its agent answers with the type `output`, by default `PhaseReply`; a
model that answers in plain text fills only its `response`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel, Field

from sabir_actors.errors import ActorError, ErrorCode


class PhaseReply(BaseModel):
    """What a phase says, and how sure its model says it is (0 … 1)."""

    response: str
    confidence: float | None = Field(default=None, ge=0, le=1)


@dataclass(frozen=True)
class Phase:
    """One stage of a thread.

    `instructions` become the system message. The first phase is asked the user's text, a later one `ask`, after the
    answers of the phases before it. `options` names the options that its agent may choose; None for all of the
    system's. `model` is by default the system's. `output` is a pydantic model, whose field `response`, or else whose
    JSON, goes to the next phase; PhaseReply asks for a response and a confidence.
    """

    name: str
    instructions: str
    ask: str = "Continue."
    output: type[BaseModel] = PhaseReply
    options: tuple[str, ...] | None = ()
    model: str | None = None


AGENTS = "agents"
"""Suffix of a thread's id in the id of its agents' actor; a phase actor's id has the phase's name instead."""


@dataclass(frozen=True)
class Chain:
    """The phases that a thread goes through, each once, in order."""

    name: str
    phases: Sequence[Phase]
    names: tuple[str, ...] = field(init=False)
    """Names of the phases, in order."""

    def __post_init__(self) -> None:
        """Refuse a chain without phases, or with two of one name."""
        object.__setattr__(self, "phases", tuple(self.phases))
        names = tuple(phase.name for phase in self.phases)
        if not names or len(set(names)) != len(names):
            reason = f"the phases of the chain {self.name!r} are {', '.join(names) or 'none'}"
            raise ActorError(ErrorCode.INVALID_CONFIG, f"{reason}; give at least one, each of its own name")
        if AGENTS in names:
            reason = f"a phase of the chain {self.name!r} is called {AGENTS!r}, as a thread's agents are"
            raise ActorError(ErrorCode.INVALID_CONFIG, f"{reason}; give it another name")
        object.__setattr__(self, "names", names)

    def phase(self, name: str) -> Phase:
        """The phase of that name; raises ActorError if there is none."""
        for phase in self.phases:
            if phase.name == name:
                return phase
        known = ", ".join(self.names)
        raise ActorError(ErrorCode.INVALID_MESSAGE, f"Invalid phase_type: {name}; the chain {self.name!r} has {known}")

    def following(self, name: str) -> str | None:
        """The phase after that one, None after the last."""
        place = self.names.index(name) + 1
        return self.names[place] if place < len(self.names) else None


_ASKED = "Answer in a few sentences, for the person who asked."
AEIOUY_CHAIN = Chain(
    "aeiou-y",
    (
        Phase("action", f"You are the action phase. Give a first answer to what was asked. {_ASKED}"),
        Phase("experience", f"You are the experience phase. Add what is known from like cases. {_ASKED}"),
        Phase("intention", f"You are the intention phase. Say what the person wants to reach. {_ASKED}"),
        Phase("observation", f"You are the observation phase. Say what the answers so far leave out. {_ASKED}"),
        Phase("understanding", f"You are the understanding phase. Decide what matters and what does not. {_ASKED}"),
        Phase("yield", f"You are the yield phase. Give the final answer, from all that was said. {_ASKED}"),
    ),
)
"""The phases of the document: action, experience, intention, observation, understanding, yield."""
