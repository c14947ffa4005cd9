"""What an evaluation gives: the last reply, the whole conversation, and what it used.

replies of every turn ──▶ PromptResponse ── text · output · messages · usage
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic

from sabir import Message, Reply, Usage

from sabir_runtime.prompt import Output

_FIGURES = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")


@dataclass(frozen=True)
class PromptResponse(Generic[Output]):
    """The response to a prompt.

    `reply` is the last one; of an evaluation that was resumed after its end, what its record says of it. `messages` are
    those of the whole evaluation, the instructions first. `output` is the reply as the prompt's type, None where the
    prompt names none. `usage` is the sum over all turns, those of earlier processes included; a figure that one
    provider did not say is None.
    """

    prompt_ns: str
    prompt_key: str
    evaluation_id: str
    reply: Reply
    messages: tuple[Message, ...]
    output: Output
    usage: Usage

    @property
    def text(self) -> str:
        """The last reply's text."""
        return self.reply.text


def total(usages: Iterable[Usage]) -> Usage:
    """The sum of each figure, None where one of them is not known; the providers' own details are left out."""
    columns = {name: [getattr(usage, name) for usage in usages] for usages in [tuple(usages)] for name in _FIGURES}
    return Usage(**{name: None if None in figures else sum(figures) for name, figures in columns.items()})
