"""Model strings for display, with the dialect only if it is not the provider's default.

openai, openai.responses, gpt-5 ──▶ openai:gpt-5          openai, openai.chat, gpt-5 ──▶ openai.chat:gpt-5

A table contains the default dialects of this project's providers, so that lists need not import their plugins. Only a
provider that is missing from the table is loaded.
"""

import sabir

_NAMES = {
    "anthropic.messages": "anthropic bedrock moonshot vertex",
    "echo.plain": "echo",
    "google.generate_content": "google",
    "openai.chat": (
        "cerebras deepseek fireworks groq huggingface llamacpp lmstudio local mistral ollama openrouter perplexity "
        "together venice vercel vllm zai"
    ),
    "openai.responses": "azure openai xai",
}
DEFAULTS = {provider: dialect for dialect, providers in _NAMES.items() for provider in providers.split()}
"""Provider of this project → the full name of the dialect that `provider:model` means."""


def model_label(provider: str, dialect: str, model: str) -> str:
    """Return the model string for a model in a dialect: `provider:model` if the dialect is the provider's default,
    otherwise `provider.chat:model`, for example, for the dialect "openai.chat".
    """
    if dialect == default_dialect(provider):
        return f"{provider}:{model}"
    return f"{provider}.{dialect.rpartition('.')[2]}:{model}"


def target_label(target: "sabir.Target") -> str:
    """Return the model string of a target; str() of the target if it has no model."""
    return model_label(target.provider, target.dialect, target.model) if target.model else str(target)


def default_dialect(provider: str) -> str:
    """Return the full name of the dialect that `provider:model` means; "" if the provider is not installed or
    broken.
    """
    if provider in DEFAULTS:
        return DEFAULTS[provider]
    from sabir.errors import PluginError

    try:
        plugin = sabir.provider(provider)
        with PluginError.blaming(f"provider {provider!r} has no dialect"):
            return str(plugin.dialect(plugin.dialects[0]).name)
    except PluginError:
        return ""
