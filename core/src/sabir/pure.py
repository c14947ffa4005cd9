"""The pure half: a dialect by its name, without endpoint, key, client or network.

sabir.dialect("acme.wire") ── render(messages) ─▶ Rendering
                           ── decode(body) ─────▶ Reply
                           ── decoder() ────────▶ feed(event), close()
"""

from collections.abc import Iterable

from sabir.catalogue import find_model
from sabir.constructors import as_messages
from sabir.contracts import Access, Decoder, Dialect
from sabir.errors import DialectMissing
from sabir.incoming import finished, raise_unreadable
from sabir.losses import Strict, refuse
from sabir.mending import mend
from sabir.messages import Message
from sabir.options import OptionLike, as_options
from sabir.registry import default_registry as registry
from sabir.rendering import Renderer, Rendering
from sabir.reply import Reply
from sabir.scope import DecodeScope, Target
from sabir.settings import Settings


class PureDialect:
    """A dialect as its own provider speaks it; keeps no state between calls."""

    def __init__(self, dialect: Dialect, target: Target) -> None:
        self.dialect = dialect
        """What the plugin implements."""
        self.target = target

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
    ) -> Rendering:
        """The request for a model's endpoint; RenderingRefused for losses that `strict` names."""
        target = self.target.model_copy(update={"model": model})
        info = find_model(registry.models(target.provider), model)
        renderer = Renderer(self.dialect, target, speaks_as=speaks_as, model_info=info)
        rendering = renderer.render(as_messages(messages), as_options(options), settings)
        refuse(rendering.losses, strict, str(target))
        return rendering

    def decode(self, body: str | bytes, *, policy: str = "llm") -> Reply:
        """A stored response → reply; ResponseInvalid, or the CallError that the body reports."""
        scope = self._scope(policy)
        mended, was_broken = mend(body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body)
        try:
            return finished(self.dialect.decode(mended, scope), (), 1, was_broken=was_broken)
        except Exception as error:
            raise_unreadable(scope, mended, error)

    def decoder(self, *, policy: str = "llm") -> Decoder:
        """A decoder for one stored or live stream: `feed(ServerEvent(data, event))`, then `close()`."""
        return self.dialect.decoder(self._scope(policy))

    def _scope(self, policy: str) -> DecodeScope:
        return DecodeScope(self.target, policy=policy)


def dialect(name: str) -> PureDialect:
    """The dialect of that full name, `provider.dialect`; ProviderMissing or DialectMissing say what there is."""
    provider_name, _, short_name = name.partition(".")
    provider = registry.provider(provider_name)
    if short_name not in provider.dialects:
        spoken = ", ".join(f"{provider_name}.{short}" for short in provider.dialects)
        raise DialectMissing(f"{name!r} is no dialect; {provider_name} speaks {spoken}")
    found = provider.dialect(short_name)
    target = Target(provider=provider_name, dialect=found.name, endpoint=provider.endpoint(Access()))
    return PureDialect(found, target)
