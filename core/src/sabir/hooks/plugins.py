"""Hooks at work: plugins that were registered, asked one by one.

    Hooks([plugin, …])   builder hooks and telemetry of these plugins
    installed_hooks()    those of the entry-point group `sabir.hooks`, loaded at first use

A registration is refused with its reason: an unknown hook, a forgotten marker, a coroutine function.
"""

import difflib
import inspect
import logging
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import pluggy

from sabir.base.errors import BuilderError, PluginConflict, PluginError, blaming, described, one_line
from sabir.base.failures import CallError
from sabir.discovery.points import HOOKS, claimed, load_beside, only
from sabir.hooks import specs
from sabir.vocabulary.messages import Kind, Message, RoleHint
from sabir.vocabulary.parts import MediaPart

if TYPE_CHECKING:
    from sabir.contract.dialect import Rendering
    from sabir.vocabulary.reply import Reply

PREFIX = "sabir_"
_HINTS = get_args(RoleHint)
KNOWN_HOOKS = tuple(name for name in vars(specs) if name.startswith(PREFIX))
HookPlugins: TypeAlias = "Iterable[object] | Hooks | Literal['installed']"
"""What builders take: plugins (modules or objects), hooks made of them, or those that are installed."""

logger = logging.getLogger("sabir")


class Hooks:
    """Plugins that implement hooks of `sabir.hooks.specs`, asked in the order of their registration."""

    def __init__(self, plugins: Iterable[object] = ()) -> None:
        self._manager = pluggy.PluginManager(specs.PROJECT)
        self._manager.add_hookspecs(specs)
        self._known_callers: dict[str, list[tuple[str, pluggy.HookCaller]]] = {}
        for plugin in plugins:
            self.register(plugin)

    def register(self, plugin: object, name: str | None = None) -> None:
        """Add a plugin. PluginError names a hook that cannot be one, PluginConflict a plugin that is there already."""
        shown = name or self._free_name(plugin)
        if isinstance(plugin, type):
            raise PluginError(f"hook plugin {shown} is a class; give an instance of it")
        with blaming(f"hook plugin {shown} cannot be read"):
            members = {each: getattr(plugin, each, None) for each in dir(plugin)}
        _check_implementations(members, shown)
        if self._manager.is_registered(plugin):
            raise PluginConflict(f"hook plugin {shown} is registered already; register it once")
        try:
            self._manager.register(plugin, shown)
            self._manager.check_pending()
        except (ValueError, pluggy.PluginValidationError) as error:
            if self._manager.is_registered(plugin):
                self._manager.unregister(plugin)
            raise PluginError(f"hook plugin {shown} does not fit: {_reason(members, error)}") from None
        self._known_callers = {}

    def role_hint(self, policy: str, kind: Kind) -> RoleHint | None:
        """The first hint that a plugin gives a message of that policy and kind; PluginError for what is no hint."""
        for name, hint in self._ask("sabir_default_role_hint", policy=policy, kind=kind):
            if hint not in _HINTS:
                remedy = f"return one of {', '.join(_HINTS)}, or None"
                raise PluginError(f"hook plugin {name} returned {hint!r} from sabir_default_role_hint; {remedy}")
            given: RoleHint = hint
            return given
        return None

    def media_id(self, part: MediaPart, index: int) -> str | None:
        """The first id that a plugin gives a media part; PluginError for what is no string."""
        for name, media_id in self._ask("sabir_media_id", part=part, index=index):
            if not isinstance(media_id, str):
                found = type(media_id).__name__
                raise PluginError(f"hook plugin {name} returned {found} from sabir_media_id; return a string or None")
            return media_id
        return None

    def built(self, message: Message) -> Message:
        """A message as the plugins leave it; an exception that one of them raises is its veto."""
        for name, caller in self._callers("sabir_message_built"):
            try:
                for changed in caller(message=message):
                    message = _checked(changed, message, name)
            except (Exception, KeyboardInterrupt):
                raise
            except BaseException as error:
                failed = f"hook plugin {name} failed in sabir_message_built: {described(error, 300)}"
                raise PluginError(f"{failed}; update or remove it") from error
        return message

    def call_started(self, rendering: "Rendering", attempt: int, call: int) -> None:
        """Tell telemetry that a request is about to be sent."""
        self._tell("sabir_call_started", rendering=rendering, attempt=attempt, call=call)

    def call_ended(self, rendering: "Rendering", reply: "Reply", call: int) -> None:
        """Tell telemetry that a reply is whole."""
        self._tell("sabir_call_ended", rendering=rendering, reply=reply, call=call)

    def call_failed(self, rendering: "Rendering", error: CallError, attempt: int, call: int) -> None:
        """Tell telemetry that an attempt failed."""
        self._tell("sabir_call_failed", rendering=rendering, error=error, attempt=attempt, call=call)

    def call_given_up(self, rendering: "Rendering", error: BaseException | None, call: int) -> None:
        """Tell telemetry that a call ended without a reply."""
        self._tell("sabir_call_given_up", rendering=rendering, error=error, call=call)

    def _tell(self, hook: str, **given: Any) -> None:
        for name, caller in self._callers(hook):
            try:
                caller(**given)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                logger.warning("hook plugin %s failed in %s and was passed over: %s", name, hook, described(error))

    def _ask(self, hook: str, **given: Any) -> Iterator[tuple[str, Any]]:
        """Each plugin's answers, in the order of registration; None is none."""
        for name, caller in self._callers(hook):
            with blaming(f"hook plugin {name} failed in {hook}"):
                answers = list(caller(**given))
            for answer in answers:
                yield name, answer

    def _callers(self, hook: str) -> list[tuple[str, pluggy.HookCaller]]:
        """What asks one plugin alone, for each that implements a hook, in the order of registration."""
        known = self._known_callers  # registering another plugin begins a new one
        if hook not in known:
            plugins = dict(self._manager.list_name_plugin())
            implementing = {found.plugin_name for found in getattr(self._manager.hook, hook).get_hookimpls()}
            asked = [name for name in plugins if name in implementing]
            others = {name: [plugin for other, plugin in plugins.items() if other != name] for name in asked}
            known[hook] = [(name, self._manager.subset_hook_caller(hook, others[name])) for name in asked]
        return known[hook]

    def _free_name(self, plugin: object) -> str:
        name = str(getattr(plugin, "__name__", None) or type(plugin).__name__)
        return f"{name}#{len(self._manager.list_name_plugin())}" if self._manager.has_plugin(name) else name


def as_hooks(hooks: HookPlugins) -> Hooks:
    """Hooks of whatever a builder was given."""
    if isinstance(hooks, Hooks):
        return hooks
    if hooks == "installed":
        return installed_hooks()
    if isinstance(hooks, str):
        raise PluginError(f"hooks={hooks!r} is unknown; give a list of plugins, or 'installed'")
    return NO_HOOKS if hooks == () else Hooks(hooks)


NO_HOOKS = Hooks()
"""The hooks of the many builders that were given none."""


@cache
def installed_hooks() -> Hooks:
    """The hooks of the entry-point group `sabir.hooks`, loaded once; a broken plugin is logged and passed over."""
    hooks = Hooks()
    for name, claims in claimed(HOOKS).items():
        try:
            hooks.register(load_beside(only(claims)), name)
        except PluginError as error:
            logger.warning("hook plugin %s was passed over: %s", name, error)
    return hooks


def _check_implementations(members: Mapping[str, Any], shown: str) -> None:
    marked = dict(_marked(members))
    for name in KNOWN_HOOKS:
        function = members.get(name)
        if not callable(function):
            continue
        if name not in marked:
            raise PluginError(f"hook plugin {shown} defines {name} without the mark @sabir.hookimpl; add it")
        if inspect.iscoroutinefunction(function):
            raise PluginError(f"hook plugin {shown}: {name} is a coroutine function; hooks are plain functions")
        is_wrapper = marked[name].get("wrapper") or marked[name].get("hookwrapper")
        if inspect.isasyncgenfunction(function) or (inspect.isgeneratorfunction(function) and not is_wrapper):
            raise PluginError(f"hook plugin {shown}: {name} is a generator function; hooks are plain functions")
    if not marked:
        raise PluginError(f"hook plugin {shown} implements no hook; hooks are {', '.join(KNOWN_HOOKS)}")


def _marked(members: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The functions that bear the mark of a hook, each with what it says."""
    for name, function in members.items():
        if inspect.isroutine(function) and (said := getattr(function, f"{specs.PROJECT}_impl", None)):
            yield name, said


def _reason(members: Mapping[str, Any], error: Exception) -> str:
    """What is wrong with a plugin that pluggy refuses."""
    unknown = next((name for name, _ in _marked(members) if name not in KNOWN_HOOKS), None)
    if unknown is None:
        return one_line(str(error))
    near = difflib.get_close_matches(unknown, KNOWN_HOOKS, n=1)
    remedy = f"did you mean {near[0]}?" if near else f"hooks are {', '.join(KNOWN_HOOKS)}"
    return f"it implements {unknown}, which is no hook; {remedy}"


def _checked(changed: object, message: Message, name: str) -> Message:
    if not isinstance(changed, Message):
        found = type(changed).__name__
        raise BuilderError(f"hook plugin {name} returned {found} from sabir_message_built; return a Message or None")
    if _identity(changed) != _identity(message):
        raise BuilderError(f"hook plugin {name} changed a message's kind or invocation id; pairing depends on them")
    return changed


def _identity(message: Message) -> tuple[str, str]:
    payload = message.payload
    return payload.kind, getattr(payload, "invocation_id", "")
