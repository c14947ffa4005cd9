"""Decide which native options a target gets, and report the others (law 2).

the API's tables have the tool, and the model accepts it ──▶ encoded by the tool's NativeTool
                                                             (for a gateway: if its row lists `native.web_search`)
otherwise=function                                       ──▶ the function, at the same place
neither                                                  ──▶ a loss
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sabir.base.values import JSONValue
from sabir.contract.native import NativeTool
from sabir.contract.scope import RequestScope
from sabir.contract.turns import LossLog, TurnScope
from sabir.options.native import NativeOption
from sabir.options.option import Option
from sabir.vocabulary.settings import Settings


class Placed(NamedTuple):
    """A native option, its position in the call's options, and its tool; None if the target has no such tool."""

    position: int
    option: NativeOption
    tool: NativeTool | None


class Arranged(NamedTuple):
    """The options of a call for one target. `positions` are the positions of the functions in the call's options."""

    functions: tuple[Option, ...] = ()
    positions: tuple[int, ...] = ()
    natives: tuple[Placed, ...] = ()
    replaced: Mapping[str, str] = {}
    """Name of a native option → name of the function that is offered instead."""

    @classmethod
    def of(cls, options: Sequence[Option], scope: TurnScope) -> "Arranged":
        """Return the functions and native options to send to a target."""
        functions: list[tuple[int, Option]] = []
        natives: list[Placed] = []
        replaced: dict[str, str] = {}
        for position, option in enumerate(options):
            if not isinstance(option, NativeOption):
                functions.append((position, option))
                continue
            is_known = scope.model_info.status_of(f"native.{option.kind}") == "accepted"
            tool = scope.tables.native.get(option.kind) if is_known else None
            if tool is None and option.otherwise is not None:
                functions.append((position, option.otherwise))
                replaced[option.name] = option.otherwise.name
            else:
                natives.append(Placed(position, option, tool))
        positions = tuple(position for position, _ in functions)
        return cls(tuple(option for _, option in functions), positions, tuple(natives), replaced)

    def restore_paths(self, request: RequestScope, losses: int, unchecked: int) -> None:
        """Replace the numbers of functions in paths by their positions in the call's options, in the losses and the
        unchecked paths that `encode_request` added after the first `losses` and `unchecked`.
        """
        if self.positions == tuple(range(len(self.positions))):
            return
        log = request.losses.losses
        log[losses:] = [each.model_copy(update={"path": self._restore(each.path)}) for each in log[losses:]]
        request.unchecked[unchecked:] = map(self._restore, request.unchecked[unchecked:])

    def _restore(self, path: str) -> str:
        start, bracket, rest = path.partition("]")
        number = start.removeprefix("options[")
        if not bracket or number == start or not number.isdecimal() or int(number) >= len(self.positions):
            return path
        return f"options[{self.positions[int(number)]}]{rest}"


def encode_natives(natives: Sequence[Placed], request: RequestScope) -> dict[str, Any]:
    """Return the fields of the request for native options, and report those that the target does not have."""
    fields: dict[str, Any] = {}
    for position, option, tool in natives:
        path = f"options[{position}]"
        if tool is None:
            reason = f"{request.target} is not known to have a {option.kind} of its own; pass a function as otherwise="
            request.losses.add("dropped", reason, path=path)
            continue
        absent = [name for name in option.fields_to_send if name not in tool.fields]
        for name in absent:
            reason = f"the {option.kind} of {request.target.dialect} has no such parameter"
            request.losses.add("dropped", reason, path=f"{path}.{name}")
        sent = option.without(absent) if absent else option
        encoded = tool.encode(sent, _own_parameters(option, path, request), request)
        if isinstance(encoded, str):
            request.losses.add("dropped", encoded, path=path)
            continue
        for name, content in encoded.items():
            fields[name] = _join(fields.get(name), content)
    return fields


def _own_parameters(option: NativeOption, path: str, request: RequestScope) -> Mapping[str, JSONValue]:
    """Return the user's parameters for the target's tool. Without a section for the target, those for other vendors are
    losses.
    """
    sections, provider = option.vendor, request.target.provider
    if provider not in sections and sections:
        reason = f"its vendor parameters are for {', '.join(sections)}, not for {provider}"
        request.losses.add("dropped", reason, path=f"{path}.vendor")
    section: Mapping[str, JSONValue] = sections.get(provider, {})
    return section


def _join(earlier: JSONValue, content: JSONValue) -> JSONValue:
    if isinstance(earlier, list) and isinstance(content, list):
        return [*earlier, *content]
    if isinstance(earlier, dict) and isinstance(content, dict):
        return {**earlier, **{name: _join(earlier.get(name), inner) for name, inner in content.items()}}
    return content


def take_choice(settings: Settings, arranged: Arranged, losses: LossLog) -> tuple[Settings, JSONValue]:
    """Return the settings without an `option_choice` that names a native option, and the API's value for this choice.

    The name of a native option that a function replaces becomes the function's name. A choice that the API cannot
    express is a loss.
    """
    choice = settings.option_choice or ""
    if choice in arranged.replaced:
        return settings.model_copy(update={"option_choice": arranged.replaced[choice]}), None
    placed = next((each for each in arranged.natives if each.option.name == choice), None)
    if placed is None or any(option.name == choice for option in arranged.functions):
        return settings, None
    settings = settings.model_copy(update={"option_choice": None})
    if placed.tool is not None and placed.tool.choice is not None:
        return settings, placed.tool.choice(placed.option)
    problem = "is not sent" if placed.tool is None else "is the API's own tool, which cannot be required"
    reason = f"{choice!r} {problem}; no choice was sent"
    losses.add("dropped", reason, path="settings.option_choice")
    return settings, None
