"""Use a dialect (API format) without an API key, a client or a network.

sabir.dialect("acme.wire") ── render(messages) ─▶ Rendering
                           ── decode(body) ─────▶ Reply
                           ── decoder() ────────▶ feed(event), close()
                           ── decode_history(request) ─▶ DecodedHistory
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Never

from pydantic_core import PydanticSerializationError, to_jsonable_python

from sabir.base.errors import HistoryInvalid, one_line
from sabir.base.failures import Loss, ResponseInvalid, Strict
from sabir.base.surface import show_arguments
from sabir.calling.adapter import ModelAdapter, without_secrets
from sabir.calling.calls import check_policy
from sabir.contract.dialect import DecodedHistory, Decoder, Dialect, Rendering, ServerEvent
from sabir.contract.provider import Access, Provider
from sabir.contract.scope import DecodeScope
from sabir.discovery import default_registry as registry
from sabir.options.option import OptionLike
from sabir.reading.incoming import decode_body, mend, quote_beginning, raise_unreadable
from sabir.vocabulary.constructors import as_messages
from sabir.vocabulary.messages import Message
from sabir.vocabulary.reply import Reply, StreamEvent
from sabir.vocabulary.settings import Settings, Target

_RENDER = ("model", "options", "settings", "strict", "speaks_as")


@show_arguments
class PureDialect:
    """One dialect (API format) without a network: renders requests, and reads stored requests and responses. Created by
    `sabir.dialect`.
    """

    def __init__(self, dialect: Dialect, target: Target, provider: Provider) -> None:
        self.dialect = dialect
        """The plugin's Dialect object."""
        self.target = target
        """The provider, dialect and endpoint that requests are rendered for. `model` is ""."""
        self.provider = provider
        """The plugin object of the provider whose models and endpoint are assumed."""

    def __repr__(self) -> str:
        return f"<dialect {self.dialect.name}>"

    def render(
        self,
        messages: str | Message | Iterable[Message],
        *,
        model: str = "",
        options: Iterable[OptionLike] = (),
        settings: Settings | None = None,
        strict: Strict = False,
        speaks_as: str = "llm",
        **misnamed: Never,
    ) -> Rendering:
        """Return the request that `sabir.adapter` without a `base_url` would send for this model. Nothing is sent.

        `model` is the model's name. `options`, `settings` and `strict` mean what they mean in `adapter.render`.
        `speaks_as` names the policy whose messages are sent as the model's own. Raises RenderingRefused for losses that
        `strict` forbids or if nothing can be sent, and SettingsInvalid, WrongWord or OptionInvalid for wrong arguments.
        """
        Settings.refuse_misnamed("render", misnamed, _RENDER)
        adapter = ModelAdapter(self.provider, self.dialect, model, Access(), speaks_as=speaks_as)
        return adapter.render(as_messages(messages), options=options, settings=settings, strict=strict)

    def decode(self, body: str | bytes, *, policy: str = "llm") -> Reply:
        """Return the reply in the body of a stored response that is not a stream. `body` is the response's JSON text,
        and `policy` the policy of the reply's messages.

        Raises ResponseInvalid if the text is not a response of this dialect, or the CallError that the response
        reports.
        """
        scope = self._decode_scope(policy)
        text = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
        _check_type(text, bytes, scope, "decode needs a response's JSON as str or bytes; pass the text")
        return decode_body(self.dialect, text, scope)

    def decoder(self, *, policy: str = "llm") -> Decoder:
        """Return a decoder for one stored or live stream: call `feed(ServerEvent(data, event))` for each event, then
        `close()`.

        Both methods return a list of stream events, and raise ResponseInvalid or the CallError that the stream reports.
        `policy` is the policy of the messages in `ReplyEnd.alternatives`; other events contain no messages. Raises
        ResponseInvalid if the dialect has no streams.
        """
        scope = self._decode_scope(policy)
        return _CheckedDecoder(self.dialect.decoder(scope), scope)

    def decode_history(self, body: str | bytes | Mapping[str, Any], *, policy: str = "llm") -> DecodedHistory:
        """Return the messages, options and settings of a stored request.

        `body` is the request's JSON text, or the mapping that was passed to the vendor's SDK. `policy` becomes the
        policy of the model's messages. Fields that only this vendor knows are in the settings, under `extra_body_for`
        or `vendor`; other fields are losses. Raises HistoryInvalid if `body` is not a request of this dialect, or if
        the dialect cannot read stored requests.
        """
        scope = self._decode_scope(policy)
        mended, was_broken = mend(_request_bytes(body))
        try:
            history = self.dialect.decode_history(mended, scope)
        except HistoryInvalid as error:
            raise HistoryInvalid(one_line(f"this is not a request of {self.dialect.name}: {error}")) from None
        except Exception as error:
            reason = f"{quote_beginning(mended)}: {one_line(f'{type(error).__name__}: {error}', 160)}"
            raise HistoryInvalid(f"this is not a request of {self.dialect.name}, {reason}") from error
        # Fields that the dialect does not know are only for the provider that this request was sent to.
        owner = self.target.model_copy(update={"model": ""})
        history = history.model_copy(update={"settings": history.settings.owned_by(owner.full_name)})
        if not was_broken:
            return history
        loss = Loss(kind="rewritten", path="request", reason="invalid Unicode was replaced by U+FFFD")
        return history.model_copy(update={"losses": (loss, *history.losses)})

    def _decode_scope(self, policy: str) -> DecodeScope:
        return DecodeScope(self.target, policy=check_policy(policy)).counted()


class _CheckedDecoder:
    """Wraps a dialect's decoder, so that each of its exceptions is raised as a CallError."""

    def __init__(self, decoder: Decoder, scope: DecodeScope) -> None:
        self._decoder = decoder
        self._scope = scope

    def feed(self, event: ServerEvent) -> list[StreamEvent]:
        """Return the events of `Decoder.feed` as a list. Raises ResponseInvalid for other exceptions than
        CallErrors.
        """
        _check_type(event, ServerEvent, self._scope, "feed needs a ServerEvent(data, event); create one for each event")
        try:
            return list(self._decoder.feed(event))
        except Exception as error:
            raise_unreadable(self._scope, event.data, error)

    def close(self) -> list[StreamEvent]:
        """Return the events of `Decoder.close` as a list. Raises ResponseInvalid for other exceptions than
        CallErrors.
        """
        try:
            return list(self._decoder.close())
        except Exception as error:
            raise_unreadable(self._scope, "", error)


def _check_type(argument: object, expected: type, scope: DecodeScope, remedy: str) -> None:
    if not isinstance(argument, expected):
        message = f"{scope.target.dialect} received a value of type {type(argument).__name__}; {remedy}"
        raise ResponseInvalid(message, provider=scope.target.provider)


def _request_bytes(body: str | bytes | Mapping[str, Any]) -> bytes:
    """Return the JSON text of a request. A mapping may contain all values that SDKs accept, pydantic models included.

    Raises HistoryInvalid for another type, and for a mapping that JSON cannot represent.
    """
    if isinstance(body, bytes):
        return body
    if isinstance(body, str):
        return body.encode("utf-8", "surrogatepass")
    if not isinstance(body, Mapping):
        raise HistoryInvalid(f"a request is JSON text or a mapping, not of type {type(body).__name__}; pass the body")
    try:
        return json.dumps(dict(body), allow_nan=False, default=to_jsonable_python).encode()
    except (PydanticSerializationError, TypeError, ValueError, RecursionError) as error:
        raise HistoryInvalid(one_line(f"the request is not JSON: {error}; pass the body that was sent")) from None


def dialect(name: str) -> PureDialect:
    """Return a dialect (API format) by its full name, `provider.dialect`, to render and read data without a network.

    Raises ProviderMissing or DialectMissing, which list the known names, and ProviderBroken or PluginConflict if the
    provider cannot be used.

    >>> import sabir
    >>> plain = sabir.dialect("echo.plain")
    >>> request = plain.render("Hello!", model="m").body_bytes
    >>> plain.decode_history(request).messages[0].text
    'Hello!'
    """
    provider_name, _, short_name = name.partition(".")
    provider = registry.provider(provider_name, short_name)
    dialect, endpoint = provider.dialect(short_name), without_secrets(provider.endpoint(Access()))
    target = Target(provider=provider_name, dialect=dialect.name, endpoint=endpoint)
    return PureDialect(dialect, target, provider)
