"""The reference of errors and losses: the tree, what each means, whether trying again may help, what core itself loses.

a vendor's refusal ──decode_error──▶ one class, whichever vendor it was
log.add("dropped", f"{target} refuses it")  ──▶  ("dropped", "… refuses it")
"""

import ast
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import sabir
import sabir.errors
from sabir.base.failures import KINDS
from sabir.errors import CallError, SabirError

from tests.docs.pages import ROOT
from tests.docs.sources import describe_class


def error_tree() -> str:
    return "```text\n" + "\n".join(_branch(SabirError, "")) + "\n```"


def error_table() -> str:
    return "\n".join(["| error | when | retryable |", "|---|---|---|", *map(_row, walk(SabirError))])


def children(error: type[SabirError]) -> list[type[SabirError]]:
    """The public errors right below one, in the order of their definition."""
    return [each for each in error.__subclasses__() if getattr(sabir.errors, each.__name__, None) is each]


def walk(error: type[SabirError]) -> Iterator[type[SabirError]]:
    yield error
    for child in children(error):
        yield from walk(child)


def _branch(error: type[SabirError], indent: str) -> Iterator[str]:
    mark = "  (retryable)" if issubclass(error, CallError) and error.retryable else ""
    yield f"{error.__name__}{mark}"
    below = children(error)
    for index, child in enumerate(below):
        is_last = index + 1 == len(below)
        first, *rest = _branch(child, indent)
        yield ("└── " if is_last else "├── ") + first
        yield from (("    " if is_last else "│   ") + line for line in rest)


def _row(error: type[SabirError]) -> str:
    return f"| `{error.__name__}` | {describe_class(error).summary} | {_retryable(error)} |"


def _retryable(error: type[SabirError]) -> str:
    if not issubclass(error, CallError):
        return ""
    return "yes" if error.retryable else "no"


def _openai(message: str, code: str | None = None, kind: str = "invalid_request_error") -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _anthropic(message: str, kind: str = "invalid_request_error") -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


def _google(message: str, status: str = "INVALID_ARGUMENT", **detail: Any) -> dict[str, Any]:
    details = [{"@type": f"type.googleapis.com/google.rpc.{name}", **each} for name, each in detail.items()]
    return {"error": {"code": 400, "message": message, "status": status, "details": details}}


_SPENT = {"violations": [{"quotaId": "GenerateRequestsPerDayPerProject"}]}
REFUSALS: Mapping[str, Mapping[str, tuple[int, dict[str, Any]]]] = {
    "a wrong key": {
        "openai.responses": (401, _openai("Incorrect API key provided.", "invalid_api_key")),
        "anthropic.messages": (401, _anthropic("invalid x-api-key", "authentication_error")),
        "google.generate_content": (400, _google("API key not valid.", ErrorInfo={"reason": "API_KEY_INVALID"})),
    },
    "an unknown model": {
        "openai.responses": (404, _openai("The model does not exist.", "model_not_found")),
        "anthropic.messages": (404, _anthropic("model: claude-0", "not_found_error")),
        "google.generate_content": (404, _google("models/gemini-0 is not found", "NOT_FOUND")),
    },
    "too long for the model": {
        "openai.responses": (400, _openai("Your input exceeds the context window.", "context_length_exceeded")),
        "anthropic.messages": (400, _anthropic("prompt is too long: 250000 tokens > 200000 maximum")),
        "google.generate_content": (400, _google(
            "The input token count exceeds the maximum number of tokens allowed.")),
    },
    "no credit left": {
        "openai.responses": (429, _openai(
            "You exceeded your current quota.", "insufficient_quota", "insufficient_quota")),
        "anthropic.messages": (400, _anthropic("Your credit balance is too low to access the API.")),
        "google.generate_content": (429, _google("Quota exceeded.", "RESOURCE_EXHAUSTED", QuotaFailure=_SPENT)),
    },
    "too many requests": {
        "openai.responses": (429, _openai("Rate limit reached.", "rate_limit_exceeded", "requests")),
        "anthropic.messages": (429, _anthropic("Rate limited.", "rate_limit_error")),
        "google.generate_content": (429, _google(
            "Resource exhausted.", "RESOURCE_EXHAUSTED", RetryInfo={"retryDelay": "7s"})),
    },
    "overloaded": {
        "openai.responses": (503, _openai("The engine is currently overloaded.", None, "server_error")),
        "anthropic.messages": (529, _anthropic("Overloaded", "overloaded_error")),
        "google.generate_content": (503, _google("The model is overloaded.", "UNAVAILABLE")),
    },
}  # fmt: skip
"""What happened → how each vendor says it: status and body, as its documentation has them."""
STATUSES = (400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529)


def error_map() -> str:
    """One row for what happened, one column a dialect; then statuses without a body that says more."""
    names = list(next(iter(REFUSALS.values())))
    head = [f"| what happened | {' | '.join(f'`{name}`' for name in names)} |", "|---|" + "---|" * len(names)]
    rows = [
        f"| {label} | {' | '.join(f'{said[name][0]}: `{_kind(name, *said[name])}`' for name in names)} |"
        for label, said in REFUSALS.items()
    ]
    bare = [
        f"| {status} alone | {' | '.join(f'`{_kind(name, status, {})}`' for name in names)} |" for status in STATUSES
    ]
    return "\n".join([*head, *rows, *bare])


def _kind(dialect: str, status: int, body: dict[str, Any]) -> str:
    made = sabir.dialect(dialect).dialect
    return type(made.decode_error(status, {}, json.dumps(body).encode(), dialect.partition(".")[0])).__name__


CORE = ROOT / "core" / "src" / "sabir"
HOLE = "…"
"""What stands for the parts of a reason that differ from case to case."""


def modules_of_core() -> list[Path]:
    """The modules that report losses themselves; what dialects are given and share reports those of the dialects."""
    return [path for path in sorted(CORE.rglob("*.py")) if not {"authoring", "contract"} & {*path.parts}]


def core_losses() -> set[tuple[str, str]]:
    """Kind and reason of each loss that a module of core writes down."""
    return {loss for path in modules_of_core() for loss in _losses_of(path)}


def _losses_of(path: Path) -> Iterator[tuple[str, str]]:
    module = ast.parse(path.read_text("utf-8"))
    for function in (node for node in ast.walk(module) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)):
        for block in _sequences(function):
            for index, statement in enumerate(block):
                places = block[:index][::-1], list(ast.walk(function)), module.body
                for kind, reason in _written_down(statement):
                    yield from ((kind, _words(each)) for each in _meanings(reason, places))


def _sequences(function: ast.AST) -> Iterator[list[ast.stmt]]:
    """Every sequence of statements in a function."""
    for node in ast.walk(function):
        for field in ("body", "orelse", "finalbody"):
            if isinstance(block := getattr(node, field, None), list):
                yield block


def _written_down(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Kind and reason of each loss that a plain statement writes down."""
    for call in ast.walk(statement) if not hasattr(statement, "body") else ():
        if not isinstance(call, ast.Call):
            continue
        named: dict[str | None, ast.expr] = {keyword.arg: keyword.value for keyword in call.keywords}
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("add", "lose", "_lose") and len(call.args) > 1:
            named |= {"kind": call.args[0], "reason": call.args[1]}
        if isinstance(call.func, ast.Name) and call.func.id == "lose":  # of vendor hints: a path and a reason
            named |= {"kind": ast.Constant("dropped"), "reason": call.args[1]}
        kind, reason = named.get("kind"), named.get("reason")
        if isinstance(kind, ast.Constant) and kind.value in KINDS and reason is not None:
            yield kind.value, reason


def _meanings(reason: ast.expr, places: tuple[list[ast.stmt], list[ast.AST], list[ast.stmt]]) -> list[ast.expr]:
    """What a reason may be: itself, or what its name was given just before, in the function, or in the module."""
    if not isinstance(reason, ast.Name):
        return [reason]
    before, within, module = ([node.value for node in place if _assigns(node, reason.id)] for place in places)
    found = before[:1] or within or module or [reason]
    arms = ([each.body, each.orelse] if isinstance(each, ast.IfExp) else [each] for each in found)
    return [arm for each in arms for arm in each]


def _assigns(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name


def _words(reason: ast.expr) -> str:
    if isinstance(reason, ast.Constant):
        return str(reason.value)
    if isinstance(reason, ast.JoinedStr):
        return "".join(_words(each) for each in reason.values)
    named = reason.value if isinstance(reason, ast.FormattedValue) else reason
    return _constants().get(named.id, HOLE) if isinstance(named, ast.Name) else HOLE


@cache
def _constants() -> dict[str, str]:
    """The texts that modules of core give a name in capitals: a reason may be made of one."""
    modules = [ast.parse(path.read_text("utf-8")) for path in modules_of_core()]
    assigned = (node for module in modules for node in module.body if isinstance(node, ast.Assign))
    return {
        target.id: node.value.value
        for node in assigned
        for target in node.targets
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        if isinstance(target, ast.Name) and target.id.isupper()
    }
