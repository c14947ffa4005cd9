"""The editable messages of one conversation, in order.

    add_message(instruction=…) ─▶ Instruction ─┐
    add_reply(reply) ─▶ AssistantResponse, ActionRequests ─┼─ progression ─▶ to_messages() ─▶ any adapter
    from_messages(history) ─▶ one editable message for each ──┘

After a change, `to_messages` converts only the changed message again. The other core messages are the same objects as
before, so an adapter can reuse its cached prefix. A thread lock protects each change of the collection, and is never
locked while anything is awaited.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from threading import RLock
from typing import Any, Self, TypeVar, Unpack

from sabir import Loss, Message, Reply
from sabir.authoring import describe_kind, show_arguments

from sabir_roles.actions import ActionRequest, ActionResponse
from sabir_roles.assistant_response import AssistantResponse
from sabir_roles.creation import CreateMethods, MessageArguments, kind_of, optional_object
from sabir_roles.errors import RoleError
from sabir_roles.instruction import Instruction
from sabir_roles.message import RoledMessage, check_kind
from sabir_roles.system import System

Kind = TypeVar("Kind", bound=RoledMessage)


class Collection(CreateMethods):
    """The messages of one conversation, in order. Base class of MessageManager. Thread-safe."""

    def __init__(
        self,
        messages: Iterable[RoledMessage] | None = None,
        progression: Sequence[str] | None = None,
        system: System | None = None,
    ) -> None:
        """Create a collection of messages. `progression` lists the ids of all messages in the wanted order; None means
        the order of `messages`.

        The system message is `system`, or else the first System among the messages, which `system` replaces. It always
        comes first. Raises RoleError for a value that is not a message, for ids that do not match the messages, for two
        messages with one id, and for a `system` that is not a System.
        """
        self._lock = RLock()
        self._messages: dict[str, RoledMessage] = {}
        """The messages by id, in order."""
        self._core_messages: list[Message | None] = []
        """The core message of each message, in order; None for an empty message. Those of messages in `_stale` are out
        of date.
        """
        self._positions: dict[str, int] = {}
        self._stale: set[str] = set()
        self._is_indexed = False
        """Whether `_core_messages` has the current order."""
        listed = _to_list("messages", () if messages is None else messages)
        for message in listed:
            check_kind(message, RoledMessage)
        if progression is not None:
            listed = _sort_messages(listed, progression)
        first = next((each for each in listed if isinstance(each, System)), None)
        for message in ([first] if first else []) + [each for each in listed if each is not first]:
            self._append(message)
        if system is not None:
            self.set_system(system)

    def __len__(self) -> int:
        """Return the number of messages."""
        return len(self._messages)

    def __iter__(self) -> Iterator[RoledMessage]:
        """Iterate over the messages, in order."""
        return iter(self.messages)

    def __contains__(self, message: object) -> bool:
        """Return whether the collection has a message with this id, or with the id of this message."""
        return (message.id if isinstance(message, RoledMessage) else message) in self._messages

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the collection as the result of `to_dict`, which `from_dict` reads."""
        return type(self).from_dict, (self.to_dict(),)

    def __deepcopy__(self, memo: object = None) -> Self:
        """Return a collection with copies of all messages, with the same ids. `copy.copy` does the same."""
        return self._from_editable(map(deepcopy, self.messages))

    __copy__ = __deepcopy__

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)} messages>"

    # Reading

    @property
    def messages(self) -> list[RoledMessage]:
        """All messages, in order."""
        with self._lock:
            return list(self._messages.values())

    @property
    def progression(self) -> list[str]:
        """The ids of all messages, in order."""
        with self._lock:
            return list(self._messages)

    @property
    def system(self) -> System | None:
        """The system message: the first message, if it is a System, otherwise None."""
        with self._lock:
            first = next(iter(self._messages.values()), None)
        return first if isinstance(first, System) else None

    def __getitem__(self, message_id: str) -> RoledMessage:
        """Return the message with this id. Raises RoleError if there is none."""
        try:
            return self._messages[message_id]
        except (KeyError, TypeError):
            raise RoleError(
                f"there is no message with the id {ascii(message_id)[:60]}; `progression` lists the ids"
            ) from None

    def _all_of(self, *kinds: type[Kind]) -> list[Kind]:
        return [each for each in self.messages if isinstance(each, kinds)]

    def _last_of(self, kind: type[Kind]) -> Kind | None:
        with self._lock:
            return next((each for each in reversed(self._messages.values()) if isinstance(each, kind)), None)

    @property
    def last_response(self) -> AssistantResponse | None:
        """The last AssistantResponse, or None."""
        return self._last_of(AssistantResponse)

    @property
    def last_instruction(self) -> Instruction | None:
        """The last Instruction, or None."""
        return self._last_of(Instruction)

    @property
    def assistant_responses(self) -> list[AssistantResponse]:
        """All AssistantResponses, in order."""
        return self._all_of(AssistantResponse)

    @property
    def instructions(self) -> list[Instruction]:
        """All Instructions, in order."""
        return self._all_of(Instruction)

    @property
    def actions(self) -> list[ActionRequest | ActionResponse]:
        """All ActionRequests and ActionResponses, in order."""
        return [each for each in self.messages if isinstance(each, ActionRequest | ActionResponse)]

    @property
    def action_requests(self) -> list[ActionRequest]:
        """All ActionRequests, in order."""
        return self._all_of(ActionRequest)

    @property
    def action_responses(self) -> list[ActionResponse]:
        """All ActionResponses, in order."""
        return self._all_of(ActionResponse)

    # Adding and removing

    def _append(self, message: RoledMessage) -> None:
        """Append a message. A message that is already in the collection keeps its position. Raises RoleError if another
        message has the same id.
        """
        self._check_free(message, self._messages)
        if message.id in self._messages:
            return
        self._messages[message.id] = message
        message._watchers.add(self)
        if self._is_indexed:
            self._positions[message.id] = len(self._core_messages)
            self._core_messages.append(None)
            self._stale.add(message.id)

    @staticmethod
    def _check_free(message: RoledMessage, present: Mapping[str, RoledMessage]) -> None:
        """Raise RoleError if another message has the same id."""
        if present.get(message.id, message) is not message:
            raise RoleError(f"another message already has the id {message.id!r}; add message.clone() instead")

    def _remove(self, message_id: str) -> None:
        self._messages.pop(message_id)._watchers.discard(self)
        self._is_indexed = False

    def changed(self, message_id: str) -> None:
        """Note that a message changed, so that its core message is built again. Messages call this themselves; it never
        waits for a lock.
        """
        self._stale.add(message_id)

    def set_system(self, system: System) -> None:
        """Make `system` the first message, and remove the earlier system message.

        Raises RoleError if the value is not a System, or if another message has the same id.
        """
        check_kind(system, System)
        with self._lock:
            present = self.system
            if present is system:
                return
            rest = {name: each for name, each in self._messages.items() if each is not present and each is not system}
            self._check_free(system, rest)
            if present is not None:
                present._watchers.discard(self)
            system._watchers.add(self)
            self._messages, self._is_indexed = {system.id: system, **rest}, False

    @show_arguments
    def add_message(self, **arguments: Unpack[MessageArguments]) -> RoledMessage:
        """Create a message from the arguments, or update the message that is passed, append it and return it.

        The arguments determine the kind of message, so pass the arguments of one kind only. A message that is already
        in the collection keeps its position. A System replaces the earlier system message and
        comes first. Raises RoleError, and changes nothing, if the arguments describe no message or two kinds, or if an
        argument is invalid.
        """
        kind = kind_of(arguments)
        extra = optional_object("metadata", arguments.pop("metadata", None))
        with self._lock:
            for each in (arguments.get(kind), arguments.get("action_request")):
                is_replaced = isinstance(each, System) and self._messages.get(each.id) is self.system
                if isinstance(each, RoledMessage) and not is_replaced:
                    self._check_free(each, self._messages)
            message = self.make(kind, arguments)
            if extra is not None:
                before = message.metadata.get("extra")
                merged = {**before, **extra} if isinstance(before, Mapping) else extra
                message.metadata = {**message.metadata, "extra": merged}
            if isinstance(message, System):
                self.set_system(message)
            else:
                self._append(message)
        return message

    @show_arguments
    async def a_add_message(self, **arguments: Unpack[MessageArguments]) -> RoledMessage:
        """Do the same as `add_message`, as a coroutine, which awaits nothing."""
        return self.add_message(**arguments)

    def clear_messages(self) -> None:
        """Remove all messages except the system message."""
        with self._lock:
            system = self.system
            for message in self.messages:
                if message is not system:
                    self._remove(message.id)

    async def aclear_messages(self) -> None:
        """Do the same as `clear_messages`, as a coroutine, which awaits nothing."""
        self.clear_messages()

    # Further conversions

    def remove_last_instruction_tool_schemas(self) -> None:
        """Remove `tool_schemas` from the last instruction, if there is one."""
        last = self.last_instruction
        if last is not None:
            last.content.pop("tool_schemas", None)

    def concat_recent_action_responses_to_instruction(self, instruction: Instruction) -> None:
        """Add the latest action responses of the collection to an instruction's context, oldest first, each as its
        `response`.

        The search goes back from the last message. It skips action requests and the instruction itself, and ends at any
        other message. Raises RoleError if `instruction` is not an Instruction.
        """
        check_kind(instruction, Instruction)
        recent: list[ActionResponse] = []
        for message in reversed(self.messages):
            if isinstance(message, ActionResponse):
                recent.append(message)
            elif message is not instruction and not isinstance(message, ActionRequest):
                break
        instruction.extend_context(*(each.response for each in reversed(recent)))

    def to_chat_msgs(self, progression: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Return the messages as `{"role": …, "content": …}`. Empty messages and messages without a role are left out.

        `progression` selects messages by their ids, in that order; None means all. Raises RoleError for an unknown id.
        """
        chosen = self.messages if progression is None else [self[each] for each in _to_list("progression", progression)]
        return [entry for entry in (message.chat_msg for message in chosen) if entry is not None]

    # Core messages

    def to_messages(self) -> list[Message]:
        """Return the core messages, which any adapter can send. Messages whose `to_message` is None, because they are
        empty or their role is unset, are left out, and `losses` lists them.

        An unchanged message is returned as the same object each time. Raises TemplateFailed if a template cannot be
        rendered, and RoleError for invalid content.
        """
        with self._lock:
            if not self._is_indexed:
                self._positions = {name: position for position, name in enumerate(self._messages)}
                self._core_messages, self._stale = [None] * len(self._messages), set(self._messages)
                self._is_indexed = True
            for name in tuple(self._stale):
                self._stale.discard(name)  # before building, so that a change during the build is noticed
                try:
                    if name in self._positions:
                        self._core_messages[self._positions[name]] = self._messages[name].to_message()
                except BaseException:
                    self._stale.add(name)
                    raise
            return [message for message in self._core_messages if message is not None]

    @property
    def losses(self) -> tuple[Loss, ...]:
        """The losses of all messages: the data of the original that an edited message does not have, and the messages
        that are not sent. Raises the errors of `to_messages`.
        """
        with self._lock:
            return tuple(loss for message in self._messages.values() for loss in message.losses)

    @classmethod
    def from_messages(cls, messages: Iterable[Message], *, speaks_as: str = "llm") -> Self:
        """Return a collection with an editable message for each core message, in the same order. Until a message is
        edited, `to_messages` returns its original.

        `speaks_as` is the policy of the model, whose messages become AssistantResponses and ActionRequests. A response
        is linked with the latest request before it that has the same invocation id and no response. A second message
        with the same id gets a new id.
        """
        manager = cls()
        manager._extend(messages, speaks_as)
        return manager

    def add_reply(self, reply: Reply) -> list[RoledMessage]:
        """Add all messages of a reply at the end, and return the editable messages.

        The first AssistantResponse among them gets the reply's fields, except its messages, as its `model_response`.
        """
        added = self._extend(reply.messages, reply.messages[0].policy if reply.messages else "llm")
        response = next((each for each in added if isinstance(each, AssistantResponse)), None)
        if response is not None:
            response.metadata["model_response"] = reply.model_dump(mode="json", exclude={"messages"})
        return added

    def _extend(self, messages: Iterable[Message], speaks_as: str) -> list[RoledMessage]:
        copies = [RoledMessage.from_message(each, speaks_as=speaks_as) for each in _to_list("messages", messages)]
        with self._lock:
            has_responses = any(isinstance(copy, ActionResponse) for copy in copies)
            open_requests = _OpenRequests(self.action_requests) if has_responses else None
            for index, copy in enumerate(copies):
                copies[index] = added = _with_unused_id(copy, self._messages)
                self._append(added)
                if open_requests:
                    open_requests.add(added)
        return copies

    # Serialising

    def to_dict(self) -> dict[str, Any]:
        """Return all messages as an object of JSON values, which `from_dict` reads."""
        return {"messages": [message.to_dict() for message in self.messages]}

    @classmethod
    def from_dict(cls, stored: object) -> Self:
        """Return a new collection from the result of `to_dict`. Raises RoleError for anything else."""
        messages = stored.get("messages") if isinstance(stored, dict) else None
        if not isinstance(messages, list):
            raise RoleError("the value is not a stored manager {'messages': [...]}; pass the result of to_dict()")
        return cls._from_editable(map(RoledMessage.from_dict, messages))

    @classmethod
    def _from_editable(cls, messages: Iterable[RoledMessage]) -> Self:
        """Return a collection of messages. Each response gets a reference to its request object."""
        manager = cls()
        for each in messages:
            manager._append(each)
        by_id = {request.id: request for request in manager.action_requests}
        for response in manager.action_responses:
            request = by_id.get(response.action_request_id or "")
            if request is not None and request.action_response_id == response.id:
                response._request = request
        return manager


class _OpenRequests:
    """The requests without a response, by invocation id. A response is linked with the latest request of its id."""

    def __init__(self, requests: Iterable[ActionRequest]) -> None:
        self._requests: dict[str, list[ActionRequest]] = {}
        for request in requests:
            self.add(request)

    def add(self, copy: RoledMessage) -> None:
        """Note a request without a response, or link a response with its request. Other messages are ignored."""
        if isinstance(copy, ActionRequest) and not copy.is_responded():
            self._requests.setdefault(copy.invocation_id, []).append(copy)
        elif isinstance(copy, ActionResponse) and self._requests.get(copy.invocation_id):
            copy.answers(self._requests[copy.invocation_id].pop())


def _with_unused_id(copy: RoledMessage, present: Mapping[str, RoledMessage]) -> RoledMessage:
    """Return the message. If its id is in use, return a copy with a new id, because a history may contain a message
    twice.
    """
    if copy.id not in present:
        return copy
    source, twin = copy.source, copy.clone()
    twin.metadata = {name: value for name, value in twin.metadata.items() if name != "clone_from"}
    twin._flag, twin._source = None, source
    return twin


def _to_list(argument: str, values: object) -> list[Any]:
    """Return an iterable as a list. Raises RoleError for a string, a mapping, or a value that is not iterable."""
    if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
        raise RoleError(f"{argument} is {describe_kind(values)}; pass a list")
    return list(values)


def _sort_messages(messages: list[RoledMessage], progression: Sequence[str]) -> list[RoledMessage]:
    ids = _to_list("progression", progression)
    by_id = {message.id: message for message in messages}
    if not all(isinstance(each, str) for each in ids) or sorted(ids) != sorted(by_id):
        unlike = [each for each in (*ids, *by_id) if not isinstance(each, str) or ids.count(each) != (each in by_id)]
        raise RoleError(f"progression and messages differ by {ascii(unlike[0])[:60]}; list the id of each message once")
    return [by_id[each] for each in ids]
