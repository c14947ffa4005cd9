"""Continue a stored conversation in the dialect of its records, even if its model string means another dialect today.

stored "maker:model", last reply of it in maker's chat      "maker:model" means today    continues on
                                                            chat                         maker:model
                                                            responses                    maker.chat:model
"""

from collections.abc import Sequence

import sabir
from sabir import Origin
from sabir.errors import PluginError


def continued_model(model: str, origins: Sequence[Origin]) -> str:
    """Return the model string with which to continue a stored conversation.

    This is `model`, or "provider.dialect:model" if `model` means another dialect (API format) today than the dialect of
    the last recorded message from its provider and model. `origins` are the origins of the recorded messages, in order.
    The string is returned unchanged if it names a dialect, if no recorded message came from its provider and model, or
    if the provider is not installed or no longer has the recorded dialect. Use this function for strings from a store
    only, not for strings that a caller passes.
    """
    provider, _, name = model.partition(":")
    replies = [origin for origin in origins if (origin.provider, origin.model) == (provider, name)]
    if not replies:
        return model
    recorded = replies[-1].dialect
    short_name = recorded.rpartition(".")[2]
    changed = _dialect(provider) != recorded == _dialect(provider, short_name)
    return f"{provider}.{short_name}:{name}" if changed else model


def _dialect(provider: str, short_name: str | None = None) -> str:
    """Return the full name of a provider's dialect; `short_name` None means its first. Return "" if it is missing."""
    try:
        plugin = sabir.provider(provider, short_name)
        with PluginError.blaming(f"provider {provider!r} has no dialect"):
            return str(plugin.dialect(short_name or plugin.dialects[0]).name)
    except PluginError:
        return ""
