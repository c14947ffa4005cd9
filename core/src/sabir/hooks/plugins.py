"""The registered hook plugins, called by pluggy.

    Hooks([plugin, …])   builder hooks and telemetry of these plugins
    installed_hooks()    the plugins of the entry-point group `sabir.hooks`, loaded at first use

    registration ──▶ a guard for each function ──▶ pluggy      a failure names its plugin; telemetry's is only logged

A registration is refused with its reason: an unknown hook, a forgotten marker, a coroutine function.
"""

import difflib
import inspect
import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from functools import cache, wraps
from itertools import chain, count
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import pluggy

from sabir.base.errors import BuilderError, PluginConflict, PluginError, one_line
from sabir.base.failures import CallError
from sabir.discovery import HOOKS, claimed, load_entry_point, only
from sabir.hooks import specs
from sabir.vocabulary.messages import Kind, Message, RoleHint
from sabir.vocabulary.parts import MediaPart

if TYPE_CHECKING:
    from sabir.contract.dialect import Rendering
    from sabir.vocabulary.reply import Reply

PREFIX = "sabir_"
_HINTS = get_args(RoleHint)
KNOWN_HOOKS = tuple(name for name in vars(specs) if name.startswith(PREFIX))
TELEMETRY = frozenset(name for name in KNOWN_HOOKS if name.startswith("sabir_call_"))
"""Hooks without an answer; their failures are logged."""
HookPlugins: TypeAlias = "Iterable[object] | Hooks | Literal['installed']"
"""The hooks that builders take: plugins (modules or objects), Hooks made of them, or "installed"."""

logger = logging.getLogger("sabir")


class Hooks:
    """Plugins that implement hooks of `sabir.hooks.specs`.

    They are called in the order of their registration, which `tryfirst` and `trylast` adjust, with wrappers around all.
    """

    def __init__(self, plugins: Iterable[object] = ()) -> None:
        self._plugins: dict[str, tuple[object, SimpleNamespace]] = {}
        self._hook = _NOBODY
        for plugin in plugins:
            self.register(plugin)

    def register(self, plugin: object, name: str | None = None) -> None:
        """Add a plugin; raises PluginError for a function that is no valid hook, PluginConflict for a second time."""
        shown = name or self._free_name(plugin)
        if isinstance(plugin, type):
            raise PluginError(f"hook plugin {shown} is a class; pass an instance of it")
        with PluginError.blaming(f"hook plugin {shown} cannot be read"):
            members = {each: getattr(plugin, each, None) for each in dir(plugin)}
        _check_implementations(members, shown)
        if shown in self._plugins or any(plugin is each for each, _ in self._plugins.values()):
            raise PluginConflict(f"hook plugin {shown} is registered already; register it once")
        plugins = {**self._plugins, shown: (plugin, _guarded(members, shown))}
        try:
            self._hook = _called(plugins)
        except (ValueError, pluggy.PluginValidationError) as error:
            raise PluginError(f"hook plugin {shown} does not match the hook: {_reason(members, error)}") from None
        self._plugins = plugins

    def unregister(self, plugin: object) -> None:
        """Remove a plugin; raises PluginError for a plugin that is not registered."""
        kept = {name: held for name, held in self._plugins.items() if held[0] is not plugin}
        if len(kept) == len(self._plugins):
            raise PluginError(f"hook plugin {_name_of(plugin)} is not registered, so it cannot be unregistered")
        self._plugins, self._hook = kept, _called(kept)

    def role_hint(self, policy: str, kind: Kind) -> RoleHint | None:
        """The first hint that a plugin gives a message of that policy and kind; PluginError for any other value."""
        hint: RoleHint | None = self._hook.sabir_default_role_hint(policy=policy, kind=kind)
        return hint

    def media_id(self, part: MediaPart, index: int) -> str | None:
        """The first id that a plugin gives a media part; raises PluginError for a value that is no string."""
        media_id: str | None = self._hook.sabir_media_id(part=part, index=index)
        return media_id

    def built(self, message: Message) -> Message:
        """The message as the plugins changed it; an exception that a plugin raises is its veto."""
        made: list[Message] = self._hook.sabir_message_built(message=[message])
        return made[-1] if made else message

    def cost(self, reply: "Reply") -> Decimal | None:
        """What a reply cost, in US dollars; None if no plugin knows, or if one fails, which is logged."""
        try:
            cost: Decimal | None = self._hook.sabir_reply_cost(reply=reply)
        except PluginError as error:
            logger.warning("%s; the cost is not known", error)
            return None
        return cost

    def call_started(self, rendering: "Rendering", attempt: int, call: int) -> None:
        """Tell telemetry that a request is about to be sent."""
        self._hook.sabir_call_started(rendering=rendering, attempt=attempt, call=call)

    def call_ended(self, rendering: "Rendering", reply: "Reply", call: int) -> None:
        """Tell telemetry that a reply is whole."""
        self._hook.sabir_call_ended(rendering=rendering, reply=reply, call=call)

    def call_failed(self, rendering: "Rendering", error: CallError, attempt: int, call: int) -> None:
        """Tell telemetry that an attempt failed."""
        self._hook.sabir_call_failed(rendering=rendering, error=error, attempt=attempt, call=call)

    def call_given_up(self, rendering: "Rendering", error: BaseException | None, call: int) -> None:
        """Tell telemetry that a call ended without a reply."""
        self._hook.sabir_call_given_up(rendering=rendering, error=error, call=call)

    def _free_name(self, plugin: object) -> str:
        name = _name_of(plugin)
        names = chain([name], (f"{name}#{n}" for n in count(1)))
        return next(each for each in names if each not in self._plugins)


def _name_of(plugin: object) -> str:
    return str(getattr(plugin, "__name__", None) or type(plugin).__name__)


def _called(plugins: dict[str, tuple[object, SimpleNamespace]]) -> pluggy.HookRelay:
    """The relay that calls the plugins in their order: pluggy calls the last registered first, so they are reversed."""
    manager = pluggy.PluginManager(specs.PROJECT)
    manager.add_hookspecs(specs)
    for name in reversed(plugins):
        manager.register(plugins[name][1], name)
    manager.check_pending()
    return manager.hook


_NOBODY = _called({})
"""The relay that calls no plugin, shared by all Hooks without plugins."""


def as_hooks(hooks: HookPlugins) -> Hooks:
    """The Hooks for a builder's argument `hooks`; raises PluginError for an unknown string."""
    if isinstance(hooks, Hooks):
        return hooks
    if hooks == "installed":
        return installed_hooks()
    if isinstance(hooks, str):
        raise PluginError(f"hooks={hooks!r} is unknown; pass a list of plugins, or 'installed'")
    return NO_HOOKS if hooks == () else Hooks(hooks)


NO_HOOKS = Hooks()
"""The hooks of all builders that were given none."""


@cache
def installed_hooks() -> Hooks:
    """Return the hooks of all installed packages (entry points of the group `sabir.hooks`). They are loaded once.

    A plugin that cannot be loaded is logged and left out.
    """
    hooks = Hooks()
    for name, claims in claimed(HOOKS).items():
        try:
            hooks.register(load_entry_point(only(claims), named=False), name)
        except PluginError as error:
            logger.warning("hook plugin %s was passed over: %s", name, error)
    return hooks


def _guarded(members: Mapping[str, Any], plugin: str) -> SimpleNamespace:
    """The object that pluggy calls in a plugin's place: its functions, each with a guard, under their own marks."""
    guards = {}
    for hook, function, is_wrapper in _marked(members):
        guard = _plain if not is_wrapper else _telling_around if hook in TELEMETRY else _around
        guards[hook] = wraps(function)(guard(function, plugin, hook))
    return SimpleNamespace(**guards)


def _plain(function: Callable[..., Any], plugin: str, hook: str) -> Callable[..., Any]:
    def call(*given: Any) -> Any:
        answer = None
        with _blaming(plugin, hook):
            answer = function(*map(_latest, given))
        if hook == "sabir_message_built":
            return _changed(answer, plugin, given)
        return None if hook in TELEMETRY else _checked_answer(answer, plugin, hook)

    return call


def _around(function: Callable[..., Any], plugin: str, hook: str) -> Callable[..., Any]:
    def call(*given: Any) -> Generator[None, Any, Any]:
        with _blaming(plugin, hook):
            answer = yield from function(*map(_latest, given))
        if hook != "sabir_message_built":
            return _checked_answer(answer, plugin, hook)
        if not isinstance(answer, list):
            found = f"returned {type(answer).__name__} from {hook}"
            raise BuilderError(f"hook plugin {plugin} {found}; a wrapper returns the list that its yield gave")
        return [_checked(each, given[0][0] if given else each, plugin) for each in answer]

    return call


def _telling_around(function: Callable[..., Any], plugin: str, hook: str) -> Callable[..., Any]:
    """The guard of a wrapper of a telemetry hook: if the wrapper fails, the hooks that it wraps still run."""

    def call(*given: Any) -> Generator[None, Any, Any]:
        around = function(*given)
        with _blaming(plugin, hook):
            next(around)
        told = yield
        with _blaming(plugin, hook), suppress(StopIteration):
            around.send(told)
            raise RuntimeError("it yields a second time")
        return told

    return call


def _latest(given: Any) -> Any:
    """An argument as a hook gets it: a message that it may change is the last of the list of its versions."""
    return given[-1] if isinstance(given, list) else given


@contextmanager
def _blaming(plugin: str, hook: str) -> Iterator[None]:
    """Guards a plugin's function: telemetry's failures are logged, others name the plugin; vetoes pass unchanged."""
    passing = Exception if hook == "sabir_message_built" else PluginError
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        failed = f"hook plugin {plugin} failed in {hook}"
        if hook in TELEMETRY:
            logger.warning("%s and was passed over: %s", failed, one_line(error))
        elif isinstance(error, passing):
            raise
        else:
            raise PluginError(f"{failed}: {one_line(error, 300)}; update or remove it") from error


def _checked_answer(answer: object, plugin: str, hook: str) -> object:
    is_valid, expected = _ANSWERS[hook]
    if answer is None or is_valid(answer):
        return answer
    described = type(answer).__name__ if hook == "sabir_media_id" else one_line(repr(answer), 80)
    raise PluginError(f"hook plugin {plugin} returned {described} from {hook}; return {expected}")


_ANSWERS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "sabir_default_role_hint": (lambda hint: hint in _HINTS, f"one of {', '.join(_HINTS)}, or None"),
    "sabir_media_id": (lambda media_id: isinstance(media_id, str), "a string or None"),
    "sabir_reply_cost": (
        lambda cost: isinstance(cost, Decimal) and cost.is_finite() and cost >= 0,
        "a Decimal of at least 0, or None",
    ),
}
"""Hook → a test for its answers, and the words that name the valid ones."""


def _changed(changed: object, plugin: str, given: Sequence[list[Message]]) -> Message | None:
    if changed is None:
        return None
    if not given:
        raise BuilderError(f"hook plugin {plugin} changed a message that is not its argument; accept `message`")
    given[0].append(_checked(changed, given[0][0], plugin))
    return given[0][-1]


def _check_implementations(members: Mapping[str, Any], shown: str) -> None:
    marked = {name: is_wrapper for name, _, is_wrapper in _marked(members)}
    for name in KNOWN_HOOKS:
        function = members.get(name)
        if not callable(function):
            continue
        if name not in marked:
            raise PluginError(f"hook plugin {shown} defines {name} without the mark @sabir.hookimpl; add it")
        if inspect.iscoroutinefunction(function):
            raise PluginError(f"hook plugin {shown}: {name} is a coroutine function; hooks are plain functions")
        yields = inspect.isgeneratorfunction(function)
        if inspect.isasyncgenfunction(function) or (yields and not marked[name]):
            raise PluginError(f"hook plugin {shown}: {name} is a generator function; hooks are plain functions")
        if marked[name] and not yields:
            raise PluginError(
                f"hook plugin {shown}: {name} is marked as a wrapper and does not yield; have it yield once"
            )
    if not marked:
        raise PluginError(f"hook plugin {shown} implements no hook; hooks are {', '.join(KNOWN_HOOKS)}")


def _marked(members: Mapping[str, Any]) -> Iterator[tuple[str, Callable[..., Any], bool]]:
    """The functions that bear the mark of a hook, and whether each is a wrapper."""
    for name, function in members.items():
        if inspect.isroutine(function) and (said := getattr(function, f"{specs.PROJECT}_impl", None)):
            yield name, function, bool(said.get("wrapper"))


def _reason(members: Mapping[str, Any], error: Exception) -> str:
    """The reason why pluggy refuses a plugin."""
    unknown = next((name for name, *_ in _marked(members) if name not in KNOWN_HOOKS), None)
    if unknown is None:
        return one_line(str(error))
    near = difflib.get_close_matches(unknown, KNOWN_HOOKS, n=1)
    remedy = f"did you mean {near[0]}?" if near else f"hooks are {', '.join(KNOWN_HOOKS)}"
    return f"it implements {unknown}, which is not a hook; {remedy}"


def _checked(changed: object, message: Message, name: str) -> Message:
    if not isinstance(changed, Message):
        found = type(changed).__name__
        raise BuilderError(f"hook plugin {name} returned {found} from sabir_message_built; return a Message or None")
    before, after = ((each.kind, getattr(each.payload, "invocation_id", "")) for each in (message, changed))
    if before != after:
        raise BuilderError(f"hook plugin {name} changed a message's kind or invocation id; pairing depends on them")
    return changed
