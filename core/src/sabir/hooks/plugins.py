"""The registered hook plugins, called by pluggy.

    Hooks([plugin, …])   the hooks of these plugins
    installed_hooks()    the plugins of the entry-point group `sabir.hooks`, loaded at first use

    register ──▶ a guard for each function ──▶ pluggy      errors name the plugin; telemetry's errors are only logged

`register` raises PluginError, with the reason, for an unknown hook, a forgotten marker and a hook that is not a plain
function.
"""

import inspect
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache, wraps
from itertools import chain, count
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import pluggy

from sabir.base.errors import BuilderError, PluginConflict, PluginError, did_you_mean, one_line
from sabir.base.failures import CallError
from sabir.discovery import HOOKS, load_entry_point, read_entry_points, single_entry_point
from sabir.hooks import specs
from sabir.vocabulary.messages import Kind, Message, RoleHint
from sabir.vocabulary.parts import MediaPart

if TYPE_CHECKING:
    from sabir.contract.dialect import Rendering
    from sabir.hooks.work import AgentWork
    from sabir.vocabulary.reply import Reply

PREFIX = "sabir_"
BUILT = "sabir_message_built"
"""The hook that may change a message. It gets the list of the message's versions so far; the last one is the newest."""
_HINTS = get_args(RoleHint)
KNOWN_HOOKS = tuple(name for name in vars(specs) if name.startswith(PREFIX))
"""The names of all hooks."""
TELEMETRY = frozenset(name for name in KNOWN_HOOKS if name.startswith(("sabir_call_", "sabir_work_")))
"""The telemetry hooks: they return nothing, and their exceptions are only logged."""
HookPlugins: TypeAlias = "Iterable[object] | Hooks | Literal['installed']"
"""What the argument `hooks` of builders accepts: a list of plugins (modules or objects), Hooks, or "installed" for all
installed plugins.
"""

logger = logging.getLogger("sabir")


class Hooks:
    """A group of plugins that implement hooks of `sabir.hooks.specs`. The methods call the hooks of all plugins.

    Plugins are called in the order of their registration, which `tryfirst` and `trylast` adjust. If a plugin's hook
    raises or returns an invalid value, `role_hint` and `media_id` raise PluginError, which names the plugin, and `cost`
    logs the error. `built` raises the plugin's exception unchanged, or BuilderError for an invalid value. Exceptions of
    telemetry hooks are only logged.
    """

    def __init__(self, plugins: Iterable[object] = ()) -> None:
        self._plugins: dict[str, tuple[object, SimpleNamespace]] = {}
        self._hook = _EMPTY_RELAY
        for plugin in plugins:
            self.register(plugin)

    def register(self, plugin: object, name: str | None = None) -> None:
        """Add a plugin, a module or an object. `name` is the plugin's name in errors; None derives it from the plugin.

        Raises PluginError for a class, for a plugin without hooks and for an invalid hook, and PluginConflict if the
        plugin or the name is registered already.
        """
        label = name or self._free_name(plugin)
        if isinstance(plugin, type):
            raise PluginError(f"hook plugin {label} is a class; pass an instance of it")
        with PluginError.blaming(f"the attributes of hook plugin {label} cannot be read"):
            members = {each: getattr(plugin, each, None) for each in dir(plugin)}
        _check_implementations(members, label)
        if label in self._plugins or any(plugin is each for each, _ in self._plugins.values()):
            raise PluginConflict(f"hook plugin {label} is registered already; register it once, with a name of its own")
        plugins = {**self._plugins, label: (plugin, _guard_hooks(members, label))}
        try:
            self._hook = _relay_for(plugins)
        except (ValueError, pluggy.PluginValidationError) as error:
            raise PluginError(f"hook plugin {label} does not match the hook: {_reason(members, error)}") from None
        self._plugins = plugins

    def unregister(self, plugin: object) -> None:
        """Remove a plugin. Raises PluginError if the plugin is not registered."""
        others = {name: each for name, each in self._plugins.items() if each[0] is not plugin}
        if len(others) == len(self._plugins):
            raise PluginError(f"hook plugin {_name_of(plugin)} is not registered, so it cannot be unregistered")
        self._plugins, self._hook = others, _relay_for(others)

    def role_hint(self, policy: str, kind: Kind) -> RoleHint | None:
        """Return the first role hint that a plugin returns for a message of this policy and kind; None if no plugin
        does.
        """
        if not self._plugins:
            return None
        hint: RoleHint | None = self._hook.sabir_default_role_hint(policy=policy, kind=kind)
        return hint

    def media_id(self, part: MediaPart, index: int) -> str | None:
        """Return the first id that a plugin returns for a media part; None if no plugin does. `index` counts from 1."""
        media_id: str | None = self._hook.sabir_media_id(part=part, index=index)
        return media_id

    def built(self, message: Message) -> Message:
        """Return the message as the plugins changed it. An exception that a plugin raises reaches the caller. Raises
        BuilderError if a plugin returns an invalid message.
        """
        if not self._plugins:
            return message
        versions: list[Message] = self._hook.sabir_message_built(message=[message])
        return versions[-1] if versions else message

    def cost(self, reply: "Reply") -> Decimal | None:
        """Return the price of a reply in US dollars; None if no plugin knows it, or if a plugin fails,
        which is logged.
        """
        try:
            cost: Decimal | None = self._hook.sabir_reply_cost(reply=reply)
        except PluginError as error:
            logger.warning("%s; the cost is not known", error)
            return None
        return cost

    def call_started(self, rendering: "Rendering", attempt: int, call: int) -> None:
        """Call the plugins' `sabir_call_started` before a request of a call is sent. `call` is the call's number."""
        if self._plugins:
            self._hook.sabir_call_started(rendering=rendering, attempt=attempt, call=call)

    def call_answered(
        self, rendering: "Rendering", status: int, headers: Mapping[str, str], attempt: int, call: int
    ) -> None:
        """Call the plugins' `sabir_call_answered` after a response's headers arrived. `call` is the call's number."""
        if self._plugins:
            self._hook.sabir_call_answered(
                rendering=rendering, status=status, headers=headers, attempt=attempt, call=call
            )

    def call_ended(self, rendering: "Rendering", reply: "Reply", call: int) -> None:
        """Call the plugins' `sabir_call_ended` after a call got its complete reply. `call` is the call's number."""
        if self._plugins:
            self._hook.sabir_call_ended(rendering=rendering, reply=reply, call=call)

    def call_failed(self, rendering: "Rendering", error: CallError, attempt: int, call: int) -> None:
        """Call the plugins' `sabir_call_failed` after an attempt of a call failed. `call` is the call's number."""
        if self._plugins:
            self._hook.sabir_call_failed(rendering=rendering, error=error, attempt=attempt, call=call)

    def call_given_up(self, rendering: "Rendering", error: BaseException | None, call: int) -> None:
        """Call the plugins' `sabir_call_given_up` after a call ended without a reply. `call` is the call's number."""
        if self._plugins:
            self._hook.sabir_call_given_up(rendering=rendering, error=error, call=call)

    def work_started(self, work: "AgentWork") -> None:
        """Call the plugins' `sabir_work_started` before an agent, an option or a workflow begins to work."""
        if self._plugins:
            self._hook.sabir_work_started(work=work)

    def work_ended(self, work: "AgentWork", error: BaseException | None) -> None:
        """Call the plugins' `sabir_work_ended` after a work ended; `error` is the exception that ended it, or None."""
        if self._plugins:
            self._hook.sabir_work_ended(work=work, error=error)

    def work_requested(self, headers: dict[str, str]) -> None:
        """Call the plugins' `sabir_work_requested`, which add to the headers for another process."""
        self._hook.sabir_work_requested(headers=headers)

    def _free_name(self, plugin: object) -> str:
        name = _name_of(plugin)
        names = chain([name], (f"{name}#{n}" for n in count(1)))
        return next(each for each in names if each not in self._plugins)


def _name_of(plugin: object) -> str:
    return str(getattr(plugin, "__name__", None) or type(plugin).__name__)


def _relay_for(plugins: dict[str, tuple[object, SimpleNamespace]]) -> pluggy.HookRelay:
    """Return pluggy's relay, which calls the plugins in their order. pluggy calls the last registered plugin first."""
    manager = pluggy.PluginManager(specs.PROJECT)
    manager.add_hookspecs(specs)
    for name in reversed(plugins):
        manager.register(plugins[name][1], name)
    manager.check_pending()
    return manager.hook


_EMPTY_RELAY = _relay_for({})
"""The relay that calls no plugin, shared by all Hooks without plugins."""


def as_hooks(hooks: HookPlugins) -> Hooks:
    """Return the Hooks for a builder's argument `hooks`. Raises PluginError for an unknown string or an
    invalid plugin.
    """
    if isinstance(hooks, Hooks):
        return hooks
    if hooks == "installed":
        return installed_hooks()
    if isinstance(hooks, str):
        raise PluginError(f"hooks={hooks!r} is unknown; pass a list of plugins, or 'installed'")
    return NO_HOOKS if hooks == () else Hooks(hooks)


NO_HOOKS = Hooks()
"""The Hooks of builders whose argument `hooks` is (), the default."""


@cache
def installed_hooks() -> Hooks:
    """Return the Hooks of the installed packages (entry points of the group `sabir.hooks`): the same object each time.

    The plugins are loaded at the first call. A plugin that cannot be loaded is logged as a warning and left out.
    """
    hooks = Hooks()
    for name, claims in read_entry_points(HOOKS).items():
        try:
            hooks.register(load_entry_point(single_entry_point(claims), named=False), name)
        except PluginError as error:
            logger.warning("hook plugin %s was skipped: %s", name, error)
    return hooks


def _guard_hooks(members: Mapping[str, Any], plugin: str) -> SimpleNamespace:
    """Return the object that is registered with pluggy instead of a plugin: its hooks, each in a function that checks
    the result and names the plugin in errors.
    """
    marked = _marked_hooks(members)
    return SimpleNamespace(**{hook: wraps(function)(_guard(function, plugin, hook)) for hook, function, _ in marked})


def _guard(function: Callable[..., Any], plugin: str, hook: str) -> Callable[..., Any]:
    """Return a function that calls a plugin's hook, checks its result, and names the plugin in errors."""
    is_telemetry, takes_versions = hook in TELEMETRY, hook == BUILT

    def call(*arguments: Any) -> Any:
        try:
            # A hook gets only the latest version of a message.
            answer = function(*(each[-1] if isinstance(each, list) else each for each in arguments))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return _report_failure(error, plugin, hook)
        if is_telemetry or answer is None:
            return None
        return _add_version(answer, plugin, arguments) if takes_versions else _check_answer(answer, plugin, hook)

    return call


def _report_failure(error: BaseException, plugin: str, hook: str) -> None:
    """Log an exception of a telemetry hook, and raise any other one: unchanged for `sabir_message_built`, otherwise as
    a PluginError that names the plugin.
    """
    failed = f"hook plugin {plugin} failed in {hook}"
    if hook in TELEMETRY:
        logger.warning("%s and was skipped: %s", failed, one_line(error))
    elif isinstance(error, Exception if hook == BUILT else PluginError):
        raise error
    else:
        raise PluginError(f"{failed}: {one_line(error, 300)}; update or remove it") from error


_ANSWERS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "sabir_default_role_hint": (lambda hint: hint in _HINTS, f"one of {', '.join(_HINTS)}, or None"),
    "sabir_media_id": (lambda media_id: isinstance(media_id, str), "a string or None"),
    "sabir_reply_cost": (
        lambda cost: isinstance(cost, Decimal) and cost.is_finite() and cost >= 0,
        "a Decimal of at least 0, or None",
    ),
}
"""Hook → a test of its result, and the valid results as text for the error."""


def _check_answer(answer: object, plugin: str, hook: str) -> object:
    """Return the result of a hook. Raises PluginError if the hook must not return it."""
    is_valid, expected = _ANSWERS[hook]
    if is_valid(answer):
        return answer
    described = type(answer).__name__ if hook == "sabir_media_id" else one_line(repr(answer), 80)
    raise PluginError(f"hook plugin {plugin} returned {described} from {hook}; return {expected}")


def _add_version(changed: object, plugin: str, arguments: Sequence[list[Message]]) -> Message:
    """Append the message that `sabir_message_built` returned to the versions, and return it. Raises BuilderError for
    another type, another kind or invocation id, and for a function without the argument `message`.
    """
    if not arguments:
        remedy = "add the argument `message`"
        raise BuilderError(f"hook plugin {plugin} returned a message, but does not receive one; {remedy}")
    if not isinstance(changed, Message):
        kind = type(changed).__name__
        raise BuilderError(f"hook plugin {plugin} returned {kind} from {BUILT}; return a Message or None")
    versions = arguments[0]
    before, after = ((each.kind, getattr(each.payload, "invocation_id", "")) for each in (versions[0], changed))
    if before != after:
        raise BuilderError(f"hook plugin {plugin} changed a message's kind or invocation id; both must stay the same")
    versions.append(changed)
    return changed


def _check_implementations(members: Mapping[str, Any], plugin: str) -> None:
    """Raise PluginError for a hook without `hookimpl`, a hook that is not a plain function, and if there is no hook."""
    marked = {name: is_wrapper for name, _, is_wrapper in _marked_hooks(members)}
    for name in KNOWN_HOOKS:
        function = members.get(name)
        if not callable(function):
            continue
        if name not in marked:
            raise PluginError(f"hook plugin {plugin} defines {name} without the decorator @sabir.hookimpl; add it")
        kind = next((kind for is_kind, kind in _NOT_PLAIN if is_kind(function)), None)
        if kind or marked[name]:
            kind = "a wrapper" if marked[name] else kind
            raise PluginError(f"hook plugin {plugin}: {name} is {kind}; hooks are plain functions")
    if not marked:
        raise PluginError(f"hook plugin {plugin} implements no hook; hooks are {', '.join(KNOWN_HOOKS)}")


_NOT_PLAIN: Sequence[tuple[Callable[[Any], bool], str]] = (
    (inspect.iscoroutinefunction, "a coroutine function"),
    (inspect.isgeneratorfunction, "a generator function"),
    (inspect.isasyncgenfunction, "a generator function"),
)
"""A test of a function, and the kind of the functions that pass it."""


def _marked_hooks(members: Mapping[str, Any]) -> Iterator[tuple[str, Callable[..., Any], bool]]:
    """Yield the functions with the decorator `hookimpl`: name, function, and whether it is marked as a wrapper."""
    for name, function in members.items():
        if inspect.isroutine(function) and (mark := getattr(function, f"{specs.PROJECT}_impl", None)):
            yield name, function, bool(mark.get("wrapper") or mark.get("hookwrapper"))


def _reason(members: Mapping[str, Any], error: Exception) -> str:
    """Return why pluggy refuses a plugin, as text."""
    unknown = next((name for name, *_ in _marked_hooks(members) if name not in KNOWN_HOOKS), None)
    if unknown is None:
        return one_line(str(error))
    remedy = did_you_mean(unknown, KNOWN_HOOKS, f"hooks are {', '.join(KNOWN_HOOKS)}")
    return f"the plugin implements {unknown}, which is not a hook; {remedy}"
