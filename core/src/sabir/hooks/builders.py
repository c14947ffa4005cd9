"""Builders, which create messages step by step.

    MessageBuilder.continue_step(last) ── add_text, add_image, … ──▶ to_message()    one `parts` message
                                       └─ add_option_call ─────────▶ a message of its own, at once
    OptionResultBuilder.response_to(call) ── success | error ──────▶ the result that answers it

The default policy is "user"; for results it is the option's name. The role hint is None unless the program or a hook
sets it. `next_step` and `continue_step` derive the step number from an anchor, which is a message or a number. If a
model made the anchor and the program passed no policy, option calls have the model's policy. The hooks for builders are
called only for builders to which they are passed.
"""

from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias, TypedDict, TypeVar, Unpack, cast

from sabir.base.errors import BuilderError, NotJSON
from sabir.base.surface import show_arguments
from sabir.base.values import JSONValue
from sabir.vocabulary.constructors import describe_kind, result_fields, result_payload
from sabir.vocabulary.media import MediaURL, Modality, shorten
from sabir.vocabulary.messages import Message, OptionCall, OptionCallPayload, PartsPayload, Payload, RoleHint
from sabir.vocabulary.parts import MediaPart, Part, Sections, TextPart

if TYPE_CHECKING:
    from sabir.hooks.plugins import HookPlugins

Anchor: TypeAlias = Message | int | None
"""What a builder continues from: a message, whose step number counts; a step number; or None."""
AnyPart = TypeVar("AnyPart", TextPart, MediaPart)


class MediaDetails(TypedDict, total=False):
    """The optional arguments of `add_image`, `add_audio`, `add_video` and `add_document`.

    mime: the MIME type, such as "image/png"; None means unknown.
    id: the part's id. None means that a hook chooses the id, or else
        that it is `media-1`, `media-2`, … in order.
    name: the file name, or None.
    vendor: provider name to hints for that provider, or None.
    """

    mime: str | None
    id: str | None
    name: str | None
    vendor: Sections | None


class _Builder:
    """The base class of both builders: stores policy, role hint, step and hooks, and creates messages."""

    def __init__(self, policy: str, role_hint: RoleHint | None, step_num: int | None, hooks: "HookPlugins") -> None:
        from sabir.hooks.plugins import as_hooks  # pluggy is imported only by programs that use builders

        if not policy:
            raise BuilderError("a builder needs a policy: the name of the author of its messages")
        self.policy = policy
        self.role_hint = role_hint
        self.step_num = step_num
        self._hooks = as_hooks(hooks)

    def _make_message(self, payload: Payload, policy: str | None = None) -> Message:
        """Create a message with the builder's policy, role hint and step, and pass it to the hooks."""
        policy = self.policy if policy is None else policy
        hint = self.role_hint if self.role_hint is not None else self._hooks.role_hint(policy, payload.kind)
        settings = {"policy": policy, "role_hint_for_llm": hint, "step_num": self.step_num}
        return self._hooks.built(Message.build("message", **settings, payload=payload))


@show_arguments
class MessageBuilder(_Builder):
    """Builds one message of several parts, and option calls, all with the same step.

    `policy` names who makes the messages, by default "user". `role_hint` is the messages' role hint; None means that a
    hook may choose it. `step_num` is the step number of the messages, or None. `hooks` are plugins to apply, or
    "installed" for the plugins of the entry-point group `sabir.hooks`. Each `add_…` method returns the part or call
    that it added.

    A call has the builder's policy. Exception: for a builder that `next_step` or `continue_step` created from a model's
    message, without `policy`, calls have the model's policy. The methods raise BuilderError or MediaRefused for a value
    that no message can have, and PluginError for a hook that fails; exceptions of the hook `sabir_message_built` are
    raised unchanged.
    """

    def __init__(
        self,
        policy: str = "user",
        role_hint: RoleHint | None = None,
        step_num: int | None = None,
        hooks: "HookPlugins" = (),
    ) -> None:
        super().__init__(policy, role_hint, step_num, hooks)
        self._parts: list[Part] = []
        self._calls: list[OptionCall] = []
        self._calls_before_parts = 0
        self._assigned: dict[str, MediaPart] = {}
        self._call_policy: str | None = None
        self._built: Message | None = None

    @classmethod
    def next_step(
        cls, anchor: Anchor, *, policy: str | None = None, role_hint: RoleHint | None = None, hooks: "HookPlugins" = ()
    ) -> Self:
        """Return a builder for the step after the anchor's step. An anchor without a step counts as step 0.

        `anchor` is a message, a step number, or None. `policy` None means "user". The other arguments are the same as
        in MessageBuilder. Raises BuilderError for another anchor.
        """
        return cls._anchored(anchor, (_step_of(anchor) or 0) + 1, policy, role_hint, hooks)

    @classmethod
    def continue_step(
        cls, anchor: Anchor, *, policy: str | None = None, role_hint: RoleHint | None = None, hooks: "HookPlugins" = ()
    ) -> Self:
        """Return a builder for the same step as the anchor's. If the anchor has no step, the messages have none.

        `anchor` is a message, a step number, or None. `policy` None means "user". The other arguments are the same as
        in MessageBuilder. Raises BuilderError for another anchor.
        """
        return cls._anchored(anchor, _step_of(anchor), policy, role_hint, hooks)

    @classmethod
    def _anchored(
        cls, anchor: Anchor, step: int | None, policy: str | None, role_hint: RoleHint | None, hooks: "HookPlugins"
    ) -> Self:
        """Return a builder for a step. Without a policy, its calls get the policy of the model that made the anchor."""
        if policy is not None:
            return cls(policy, role_hint, step, hooks)
        builder = cls(role_hint=role_hint, step_num=step, hooks=hooks)
        builder._call_policy = _policy_of_model(anchor)
        return builder

    def add_text(self, text: str) -> TextPart:
        """Append a text part, and return the part. Raises BuilderError if `text` is not a str of valid Unicode."""
        return self._append_part(TextPart.build(text=text))

    def add_image(
        self, prompt_hint: str | None = None, url: str | None = None, **how: Unpack[MediaDetails]
    ) -> MediaPart:
        """Append an image part, and return the part. `prompt_hint` says what the image shows, or is None. `url` is the
        image's URL and required.

        Raises BuilderError without a URL, if hint and URL are swapped, for an `id` that the builder already chose for
        another part, and for other arguments of a wrong type; MediaRefused for an invalid URL.
        """
        return self._add_media("image", prompt_hint, url, how)

    def add_audio(
        self, prompt_hint: str | None = None, url: str | None = None, **how: Unpack[MediaDetails]
    ) -> MediaPart:
        """Append a sound part, and return the part. Arguments and errors are the same as for `add_image`."""
        return self._add_media("audio", prompt_hint, url, how)

    def add_video(
        self, prompt_hint: str | None = None, url: str | None = None, **how: Unpack[MediaDetails]
    ) -> MediaPart:
        """Append a video part, and return the part. Arguments and errors are the same as for `add_image`."""
        return self._add_media("video", prompt_hint, url, how)

    def add_document(
        self, prompt_hint: str | None = None, url: str | None = None, **how: Unpack[MediaDetails]
    ) -> MediaPart:
        """Append a document part, and return the part. Arguments and errors are the same as for `add_image`."""
        return self._add_media("document", prompt_hint, url, how)

    def add_option_call(self, name: str, arguments: JSONValue = None) -> OptionCall:
        """Add an option call, a message of its own with a new invocation id, and return the message.

        `name` is the option's name, `arguments` a JSON object; None means no arguments. Raises BuilderError for an
        empty name and if `arguments` is not a JSON object.
        """
        identity = {"invocation_id": Message.new_id(), "option_name": name}
        arguments = {} if arguments is None else arguments
        payload = OptionCallPayload.build("option call", **identity, arguments=arguments)
        call = cast(OptionCall, self._make_message(payload, self._call_policy))
        if not self._parts:
            self._calls_before_parts += 1
        self._calls.append(call)
        return call

    @property
    def last_option_call(self) -> OptionCall:
        """The option call that was added last. Raises BuilderError if there is none."""
        if not self._calls:
            raise BuilderError("this builder has no option call; add one with add_option_call(name, arguments)")
        return self._calls[-1]

    def to_message(self) -> Message:
        """Return one message with all parts in order. The option calls are not included.

        Returns the same message each time until another part is added. Raises BuilderError if there are no parts.
        """
        if not self._parts:
            calls = "; its option calls are in to_messages()" if self._calls else ""
            raise BuilderError(f"this builder has no parts; add some with add_text or add_image{calls}")
        if self._built is None:
            self._built = self._make_message(PartsPayload(parts=tuple(self._parts)))
        return self._built

    def to_messages(self) -> list[Message]:
        """Return all messages in order: the option calls, and `to_message()` in the place where the first part was
        added.

        Raises BuilderError if the builder is empty.
        """
        if self._calls and not self._parts:
            return list(self._calls)
        before = self._calls_before_parts
        return [*self._calls[:before], self.to_message(), *self._calls[before:]]

    def _add_media(self, modality: Modality, prompt_hint: str | None, url: str | None, how: MediaDetails) -> MediaPart:
        """Append a media part with a checked URL and an id. Raises BuilderError if hint and URL are swapped or the id
        is taken.
        """
        if url is None or (MediaURL(prompt_hint or "").has_known_scheme and not MediaURL(url).has_known_scheme):
            call = f"add_{modality}({shorten(prompt_hint or '')}{'' if url is None else ', …'})"
            raise BuilderError(f"{call}: write the hint first, then the URL: add_{modality}(prompt_hint, url)")
        part = MediaPart.build(modality=modality, url=MediaURL(url).check(), prompt_hint=prompt_hint, **how)
        if not part.id:
            part = part.model_copy(update={"id": self._media_id(part)})
            self._assigned[part.id or ""] = part
        elif other := self._assigned.get(part.id):
            both = " and ".join(f"{each.modality} {shorten(each.prompt_hint or each.url)}" for each in (part, other))
            remedy = "the second has the id already, so choose another"
            raise BuilderError(f"id {part.id!r} would name two media: {both}; {remedy}")
        return self._append_part(part)

    def _media_id(self, part: MediaPart) -> str:
        """Return the id that a hook chooses; if none does, the next free `media-N`."""
        media = [each for each in self._parts if isinstance(each, MediaPart)]
        index = len(media) + 1
        if media_id := self._hooks.media_id(part, index):
            return media_id
        used = {each.id for each in media}
        while f"media-{index}" in used:
            index += 1
        return f"media-{index}"

    def _append_part(self, part: AnyPart) -> AnyPart:
        self._parts.append(part)
        self._built = None
        return part


class OptionResultBuilder(_Builder):
    """Builds the result of one option call. Create the builder by `response_to`.

    The result has the invocation id, the option name and the step of the call. The policy of the result is `policy`;
    None means the option's name. Assigning another value to `invocation_id` or `option_name` raises BuilderError.
    """

    def __init__(self, call: Message, policy: str | None = None, hooks: "HookPlugins" = ()) -> None:
        payload = _call_of(call)
        super().__init__(payload.option_name if policy is None else policy, None, call.step_num, hooks)
        self._call = payload

    @classmethod
    def response_to(cls, call: Message, *, policy: str | None = None, hooks: "HookPlugins" = ()) -> Self:
        """Return a builder for the result of an option call. Raises BuilderError if `call` is another kind of message.

        `policy` names who answers, for example `sabir.RUNTIME`; None means the option's name. `hooks` is the same as in
        MessageBuilder.
        """
        return cls(call, policy, hooks)

    @property
    def invocation_id(self) -> str:
        """The invocation id of the call."""
        return self._call.invocation_id

    @invocation_id.setter
    def invocation_id(self, value: str) -> None:
        self._refuse_other("invocation_id", self._call.invocation_id, value)

    @property
    def option_name(self) -> str:
        """The name of the called option."""
        return self._call.option_name

    @option_name.setter
    def option_name(self, value: str) -> None:
        self._refuse_other("option_name", self._call.option_name, value)

    def success(self, result: object = None) -> Message:
        """Return the result of an option that succeeded: a message to append to the conversation.

        `result` is a JSON value (None, 0 and "" included), or a text or media part, a message or a list of these.
        Raises BuilderError for any other value.
        """
        try:
            fields = result_fields(result)
        except NotJSON as error:
            raise BuilderError(str(error)) from None
        return self._make_result(**fields)

    def error(self, error_type: str, error_message: str, retryable: bool = False) -> Message:
        """Return the error result of an option that failed or did not run: a message to append to the conversation.

        `error_type` is a short name, which must not be empty, and `error_message` the text for the model. `retryable`
        says whether the same call may succeed later. Raises BuilderError for invalid values.
        """
        return self._make_result(is_error=True, error_type=error_type, error_message=error_message, retryable=retryable)

    def _make_result(self, **outcome: Any) -> Message:
        return self._make_message(result_payload(self._call, outcome))

    def _refuse_other(self, field: str, expected: str, value: str) -> None:
        if value != expected:
            remedy = "a result belongs to one call; create another builder with response_to"
            raise BuilderError(f"{field} is {expected!r} and cannot become {value!r}: {remedy}")


def _call_of(message: object) -> OptionCallPayload:
    if isinstance(message, Message) and message.call is not None:
        return message.call
    raise BuilderError(f"response_to answers an option call, not {describe_kind(message)}; see reply.option_calls")


def _policy_of_model(anchor: Anchor) -> str | None:
    """Return the policy of a message of a model (with an origin, or with the policy "llm"); None for other anchors."""
    if not isinstance(anchor, Message) or anchor.kind == "option_result":
        return None
    return anchor.policy if anchor.origin is not None or anchor.policy == "llm" else None


def _step_of(anchor: object) -> int | None:
    """Return the step number of an anchor. Raises BuilderError for a value that cannot be an anchor."""
    if isinstance(anchor, Message):
        return anchor.step_num
    if anchor is None or (isinstance(anchor, int) and not isinstance(anchor, bool) and anchor >= 0):
        return anchor
    described = str(anchor) if type(anchor) is int else describe_kind(anchor)
    raise BuilderError(f"a step needs a message, a step number of 0 or more, or None, not {described}")


class Step(NamedTuple):
    """Adjacent messages with the same step number. `step_num` is None for messages without a step. Created by
    `group_steps`.
    """

    step_num: int | None
    messages: tuple[Message, ...]


def group_steps(messages: Iterable[Message]) -> list[Step]:
    """Group the messages of a conversation into steps, in order.

    Adjacent messages with the same `step_num` form a Step, and so do adjacent messages without a number. A number that
    appears again later starts another Step.
    """
    return [Step(number, tuple(group)) for number, group in groupby(messages, key=lambda each: each.step_num)]
