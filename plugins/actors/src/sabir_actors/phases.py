"""Phase and Chain: the steps of a thread, each with instructions for its agent and the type of the answer.

    Chain("aeiou-y", (Phase("action", …), …, Phase("yield", …)))       AEIOUY_CHAIN, the default
    Chain("review", (Phase("draft", …), Phase("critique", output=Critique), Phase("final", …)))

An agent receives the answers of the phases before it. The response format of its request is the phase's `output`, by
default `PhaseReply`. If a model answers to PhaseReply in plain text, the text becomes `response`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel, Field

from sabir_actors.errors import ActorError, ErrorCode


class PhaseReply(BaseModel):
    """What a phase says, and how sure its model says it is (0 … 1)."""  # sent to the model, in the answer's schema

    response: str
    confidence: float | None = Field(default=None, ge=0, le=1)


@dataclass(frozen=True)
class Phase:
    """One step of a thread: the instructions for its agent, and the type of the agent's answer.

    `name` is unique in the chain. `instructions` is the system message. The first phase receives the user's text as the
    user message. A later phase receives `ask`, after the user's text and the answers of the phases before it. `output`
    is a pydantic model for the answer; its field `response` if this is a text, or else the JSON of the answer, is
    passed to the next phase. `options` are the names of the system's options that the agent may call: () allows no
    option, None all options of the system. `model` is a model string; None means the system's model.
    """

    name: str
    instructions: str
    ask: str = "Continue."
    output: type[BaseModel] = PhaseReply
    options: tuple[str, ...] | None = ()
    model: str | None = None


AGENTS = "agents"
"""The last part of the id of the actor of a thread's agents, `<thread id>/agents`. The id of a phase actor is
`<thread id>/<phase name>`.
"""


@dataclass(frozen=True)
class Chain:
    """A named list of phases. A thread runs each phase once, in order. Passed to ActorSystem in `chains`.

    Raises ActorError (INVALID_CONFIG) for a chain without phases, with two phases of one name, or with a phase named
    "agents".

    >>> from sabir_actors import Chain, Phase
    >>> review = Chain("review", (Phase("draft", "Write a draft."), Phase("final", "Improve the draft.")))
    >>> review.names, review.following("draft")
    (('draft', 'final'), 'final')
    """

    name: str
    phases: Sequence[Phase]
    names: tuple[str, ...] = field(init=False)
    """The names of the phases, in order."""

    def __post_init__(self) -> None:
        """Set `names`. Raises ActorError (INVALID_CONFIG) for missing phases, duplicate names, or the name "agents"."""
        object.__setattr__(self, "phases", tuple(self.phases))
        names = tuple(phase.name for phase in self.phases)
        if not names or len(set(names)) != len(names):
            reason = f"the chain {self.name!r} has no phases or duplicate names: {', '.join(names) or 'none'}"
            raise ActorError(ErrorCode.INVALID_CONFIG, f"{reason}; pass at least one phase, with unique names")
        if AGENTS in names:
            reason = f"a phase of the chain {self.name!r} is named {AGENTS!r}, which is reserved for a thread's agents"
            raise ActorError(ErrorCode.INVALID_CONFIG, f"{reason}; use another name for the phase")
        object.__setattr__(self, "names", names)

    def phase(self, name: str) -> Phase:
        """Return the phase with this name. Raises ActorError (INVALID_MESSAGE) for an unknown name."""
        for phase in self.phases:
            if phase.name == name:
                return phase
        known = ", ".join(self.names)
        raise ActorError(ErrorCode.INVALID_MESSAGE, f"Invalid phase_type: {name}; the chain {self.name!r} has {known}")

    def following(self, name: str) -> str | None:
        """Return the name of the phase after `name`; None after the last. Raises ValueError for an unknown name."""
        position = self.names.index(name) + 1
        return self.names[position] if position < len(self.names) else None


_STYLE = "Answer in a few sentences, for the person who asked."
AEIOUY_CHAIN = Chain(
    "aeiou-y",
    (
        Phase("action", f"You are the action phase. Give a first answer to what was asked. {_STYLE}"),
        Phase("experience", f"You are the experience phase. Add what is known from like cases. {_STYLE}"),
        Phase("intention", f"You are the intention phase. Say what the person wants to reach. {_STYLE}"),
        Phase("observation", f"You are the observation phase. Say what the answers so far leave out. {_STYLE}"),
        Phase("understanding", f"You are the understanding phase. Decide what matters and what does not. {_STYLE}"),
        Phase("yield", f"You are the yield phase. Give the final answer, from all that was said. {_STYLE}"),
    ),
)
"""The default chain, with the phases action, experience, intention, observation, understanding and yield."""
