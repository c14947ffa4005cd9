"""Instruction: a user's request, with guidance, context, images, function schemas and the response format.

guidance, instruction, context, tool_schemas, response format ──template──▶ text      plain_content replaces the text
images ──▶ media parts, each with the requested detail
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeAlias, TypedDict, Unpack, cast

from jinja2 import Template
from pydantic import BaseModel, PrivateAttr, PydanticUserError
from sabir import Message, Settings
from sabir.authoring import describe_kind, one_line, show_arguments

from sabir_roles.content import json_copy
from sabir_roles.core_messages import PartsContent
from sabir_roles.errors import RoleError
from sabir_roles.images import check_images, image_url
from sabir_roles.message import Entry, RoledMessage
from sabir_roles.roles import MessageRole, SenderRecipient
from sabir_roles.templates import as_json

ImageDetail: TypeAlias = Literal["low", "high", "auto"]
DETAILS = ("low", "high", "auto")
DEFAULT_DETAIL: ImageDetail = "auto"
"""The value of `image_detail` if none was set. Core messages then contain no detail, so the vendor chooses."""


class InstructionArguments(TypedDict, total=False):
    """The optional arguments of `Instruction.create` and `update`. None means not passed.

    context: information for the request, any JSON value; a list is several items.
    guidance: general rules for the answer, any JSON value.
    images: one or more URLs (http, https, data), or base64 texts.
    sender: who sends the message; `create` uses "user" by default.
    recipient: who receives the message; `create` uses "assistant" by default.
    request_fields: the fields of the answer, a list of names or a mapping of names to descriptions. The text asks the
    model for JSON with these fields.
    plain_content: a text that replaces the rendered text.
    image_detail: the detail of all images: "low", "high" or "auto".
    request_model: a pydantic model, as class or instance. The text asks for an answer with its fields and schema, and
    `settings` contains it. The answer is not validated.
    response_format: another name of `request_model`. Pass at most one of request_fields, request_model and
    response_format.
    tool_schemas: the schemas of functions that the text describes, any JSON value. They are not declared as tools.
    template: a jinja2 source, the file name of a template of sabir_roles, or a Template. It replaces the default.
    """

    context: Any
    guidance: Any
    images: list[str] | str | None
    sender: SenderRecipient | None
    recipient: SenderRecipient | None
    request_fields: Mapping[str, Any] | list[str] | None
    plain_content: str | None
    image_detail: ImageDetail | None
    request_model: type[BaseModel] | BaseModel | None
    response_format: type[BaseModel] | BaseModel | None
    tool_schemas: Any
    template: Template | str | None


class _AnswerFormat(NamedTuple):
    """The requested response format: its fields of the content, and its model, if it is a model."""

    content: dict[str, Any]
    model: type[BaseModel] | None = None


@show_arguments
class Instruction(RoledMessage):
    """A user's request, with optional guidance, context, images, function schemas and response format.

    >>> import sabir_roles
    >>> instruction = sabir_roles.Instruction.create("Translate.", context="Guten Tag")
    >>> print(instruction.text)
    ## Instruction
    Translate.
    <BLANKLINE>
    ## Context
    Guten Tag
    """

    keys: ClassVar = (
        "guidance", "instruction", "context", "tool_schemas", "plain_content", "image_detail", "images",
        "request_fields", "respond_schema_info", "request_response_format",
    )  # fmt: skip
    payload_kind: ClassVar = "parts"
    side: ClassVar = "user"
    stored_as: ClassVar = "Instruction"
    own_template: ClassVar = "instruction_message.jinja2"
    own_people: ClassVar = (MessageRole.USER, MessageRole.USER, MessageRole.ASSISTANT)

    _model: type[BaseModel] | None = PrivateAttr(default=None)
    _schema: dict[str, Any] | None = PrivateAttr(default=None)
    """The JSON schema of `_model` when it was passed. If the content has another schema now, the model is not used."""

    @property
    def guidance(self) -> Any:  # any JSON value
        """The general rules for the answer, or None."""
        return self.content.get("guidance")

    @property
    def instruction(self) -> Any:  # any JSON value
        """The user's request, any JSON value, or None."""
        return self.content.get("instruction")

    @property
    def context(self) -> Any:  # a list of JSON values
        """The items of information for the request as a list, or None."""
        return self.content.get("context")

    @property
    def tool_schemas(self) -> Any:  # any JSON value
        """The schemas of the functions that the text describes, or None."""
        return self.content.get("tool_schemas")

    @property
    def plain_content(self) -> str | None:
        """The text that replaces the rendered text, or None."""
        return self.content.get("plain_content")

    @property
    def images(self) -> list[str]:
        """The images as URLs (http, https, data) or base64 texts; [] without images. Raises RoleError if `images` in
        the content is not a list of strings.
        """
        images = self.content.get("images") or []
        if isinstance(images, list) and all(isinstance(image, str) for image in images):
            return images
        raise RoleError(
            f"the images in content are {ascii(json_copy(images))[:60]}; expected a list of URLs or base64 texts"
        )

    @property
    def image_detail(self) -> ImageDetail | None:
        """The detail of the images: "low", "high" or "auto" (also if none was set). None without images. Raises
        RoleError for another value in the content.
        """
        return (_check_detail(self.content.get("image_detail")) or DEFAULT_DETAIL) if self.images else None

    @property
    def request_fields(self) -> dict[str, Any] | None:
        """The requested fields of the answer with their descriptions, or None."""
        return self.content.get("request_fields")

    @property
    def response_format(self) -> type[BaseModel] | None:
        """The pydantic model of the answer. None if no model was passed, if `request_fields` or a change of
        `respond_schema_info` replaced it, or if the message was loaded by `from_dict`.
        """
        model, schema = self._model, self._schema
        return model if model is not None and self.respond_schema_info == schema else None

    @property
    def respond_schema_info(self) -> dict[str, Any] | None:
        """The JSON schema of the answer, or None."""
        return self.content.get("respond_schema_info")

    @property
    def request_response_format(self) -> str | None:
        """The sentence that asks the model for JSON with the requested fields, or None."""
        return self.content.get("request_response_format")

    @property
    def settings(self) -> Settings:
        """Settings with the response format, for the call that sends this message. MessageManager passes the settings
        of its last instruction.

        Empty without a model or schema, also with `request_fields`.
        """
        if self.response_format is not None:
            return Settings(response_format=self.response_format)
        schema = self.respond_schema_info
        return Settings(response_format=json_copy(schema)) if schema else Settings()

    @classmethod
    def _read_content(cls, message: Message) -> dict[str, Any]:
        content: dict[str, Any] = {"instruction": message.text} if message.text else {}
        images = [part for part in message.parts if part.kind == "media" and part.modality == "image"]
        if images:
            content["images"] = [part.url for part in images]
            details = {section.get("detail") for part in images for section in part.vendor.values()}
            if len(details) == 1 and details <= set(DETAILS):
                content["image_detail"] = details.pop()
        return content

    def _core_content(self) -> PartsContent:
        detail = self.content.get("image_detail") and self.image_detail
        return PartsContent(self.written, tuple(self.images), self.image_detail, detail)

    @classmethod
    def create(
        cls,
        instruction: Any = None,  # any JSON value
        **arguments: Unpack[InstructionArguments],
    ) -> "Instruction":
        """Return an instruction. `instruction` is the user's request, any JSON value.

        Raises RoleError for more than one response format, an invalid argument or an unknown argument, and
        TemplateFailed for a template that cannot be compiled.
        """
        content, form = _read_arguments({**arguments, "instruction": instruction}, ())
        values = {**content, **(form.content if form else {})}
        message = cls._new(values, arguments.get("sender"), arguments.get("recipient"), arguments.get("template"))
        message._set_model(form)
        return message

    def update(  # type: ignore[override]
        self,
        *,
        instruction: Any = None,
        **arguments: Unpack[InstructionArguments],
    ) -> None:
        """Change the fields that are passed. None means not passed. New context is appended, other fields are replaced.

        Raises RoleError for an invalid argument, and changes nothing then.
        """
        with self._editing:
            content, form = _read_arguments({**arguments, "instruction": instruction}, self._context_items())
            self._change(content, arguments.get("sender"), arguments.get("recipient"), arguments.get("template"))
            if form:
                for name in ("request_fields", "respond_schema_info", "request_response_format"):
                    self.content.pop(name, None)
                self.content.update(form.content)
                self._set_model(form)

    def _set_model(self, form: _AnswerFormat | None) -> None:
        """Store the model of a response format, or remove the stored model."""
        self._model = form.model if form else None
        self._schema = form.content.get("respond_schema_info") if form else None

    def _context_items(self) -> list[Any]:
        return [] if self.context is None else _as_list(self.context)

    def extend_images(self, images: list[str] | str, image_detail: ImageDetail | None = None) -> None:
        """Add images. `image_detail` sets the detail of all images, also of earlier ones; None leaves it unchanged.

        Raises RoleError for an invalid image or detail, and if `images` in the content is invalid.
        """
        detail, added = _check_detail(image_detail), check_images(images)
        with self._editing:
            self._change({"images": [*self.images, *added], **({"image_detail": detail} if detail else {})})

    def extend_context(self, *args: Any, **kwargs: Any) -> None:
        """Add items to the context: each positional argument as one item, each named argument as `{name: value}`.
        Raises RoleError if JSON cannot represent a value.
        """
        added = [*args, *({name: value} for name, value in kwargs.items())]
        with self._editing:
            self._change({"context": [*self._context_items(), *added]})

    @property
    def rendered(self) -> str | list[Entry]:
        """The text of the message. With images, a list of entries as in OpenAI's chat API: the text, then each image
        with its detail. Raises RoleError for an image that is neither a URL nor base64.
        """
        if not self.images:
            return self.text
        entries: list[Entry] = [{"type": "text", "text": self.text}]
        for image in self.images:
            entry = {"url": image_url(image), "detail": self.image_detail}
            entries.append({"type": "image_url", "image_url": entry})
        return entries

    def _render_text(self) -> str:
        return super()._render_text() if self.plain_content is None else self.plain_content

    def _text_without_template(self) -> str:
        texts = {name: value for name, value in self.content.items() if name not in ("images", "image_detail")}
        return self._format_content(texts)

    def _copy_unserialised(self, other: Self) -> None:
        self._model, self._schema = other._model, other._schema


_PEOPLE = frozenset({"sender", "recipient", "template"})


def _read_arguments(passed: Mapping[str, Any], context: Sequence[Any]) -> tuple[dict[str, Any], _AnswerFormat | None]:
    """Return the content for the arguments, without those that are None, and the response format. New items of context
    come after `context`. Raises RoleError for an unknown or invalid argument.
    """
    known = _PEOPLE | set(InstructionArguments.__annotations__) | {"instruction"}
    for name in passed:
        if name not in known:
            raise RoleError(f"an instruction has no argument {name!r}; its arguments are {', '.join(sorted(known))}")
    form = _choose_format(passed.get("request_fields"), passed.get("request_model"), passed.get("response_format"))
    added, images = passed.get("context"), passed.get("images")
    content = {
        "guidance": passed.get("guidance"),
        "instruction": passed.get("instruction"),
        "context": None if added is None else [*context, *_as_list(added)],
        "tool_schemas": passed.get("tool_schemas"),
        "plain_content": _check_text(passed.get("plain_content")),
        "image_detail": _check_detail(passed.get("image_detail")),
        "images": None if images is None else check_images(images),
    }
    return {name: value for name, value in content.items() if value is not None}, form


def _as_list(context: object) -> list[Any]:
    return list(context) if isinstance(context, list | tuple) else [context]


def _check_text(text: object) -> str | None:
    if text is None or isinstance(text, str):
        return text
    raise RoleError(f"plain_content is {describe_kind(text)}; pass a text, or instruction= for another JSON value")


def _check_detail(detail: object) -> ImageDetail | None:
    if detail is None or detail in DETAILS:
        return cast("ImageDetail | None", detail)
    raise RoleError(f"image_detail is {ascii(detail)[:40]}; expected one of {', '.join(DETAILS)}")


def _choose_format(
    fields: Mapping[str, Any] | list[str] | None,
    request_model: type[BaseModel] | BaseModel | None,
    response_format: type[BaseModel] | BaseModel | None,
) -> _AnswerFormat | None:
    """Return the response format; None if no format was passed. Raises RoleError for several or invalid formats."""
    formats = {"request_fields": fields, "request_model": request_model, "response_format": response_format}
    names = [name for name, value in formats.items() if value is not None]
    if len(names) > 1:
        raise RoleError(
            f"{' and '.join(names)} were passed; pass one of request_fields, request_model, response_format"
        )
    if not names:
        return None
    if fields is not None:
        return _AnswerFormat(_ask_for_json(_describe_fields(fields)))
    model = request_model if request_model is not None else response_format
    model = type(model) if isinstance(model, BaseModel) else model
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise RoleError(f"{names[0]} is {describe_kind(model)}; pass a pydantic model")
    try:
        schema: dict[str, Any] = json_copy(model.model_json_schema())
    except PydanticUserError as error:
        reason = one_line(error.message, 120)
        raise RoleError(f"{model.__name__} has no JSON schema: {reason}; pass a model with JSON fields") from None
    types = {name: field.description or _field_type(schema, name) for name, field in model.model_fields.items()}
    return _AnswerFormat({**_ask_for_json(types), "respond_schema_info": schema}, model)


def _describe_fields(fields: object) -> dict[str, Any]:
    if isinstance(fields, Mapping):
        return {str(name): _describe_field(value) for name, value in fields.items()}
    if isinstance(fields, list | tuple) and all(isinstance(name, str) for name in fields):
        return dict.fromkeys(fields, "any")
    raise RoleError(
        f"request_fields is {describe_kind(fields)}; pass a list of names, or a mapping of names to descriptions"
    )


def _describe_field(value: object) -> Any:
    """Return the description of a requested field: the name of a type, or a JSON value unchanged."""
    return value.__name__ if isinstance(value, type) else json_copy(value)


def _field_type(schema: Mapping[str, Any], name: str) -> str:
    properties = schema.get("properties") or {}
    return str((properties.get(name) or {}).get("type") or "any")


def _ask_for_json(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the content that ask the model for JSON with these fields."""
    sentence = f"Answer with one JSON object of these fields, and nothing else:\n{as_json(fields)}"
    return {"request_fields": fields, "request_response_format": sentence}
