"""The entry point: `sabir.adapter("acme:model")` finds this object by the name that pyproject.toml gives it.

    one row of data ──▶ CompatibleProvider        dialect, SDK client, errors and streams are sabir-openai's

Change: the row. A quirk says where the endpoint deviates from Chat Completions; QUIRKS in sabir_openai.chat_dialect
explains each. These two are safe at any endpoint; the conformance kit tells which others yours needs.
"""

from sabir_openai import CompatibleProvider, Row

ROW = Row(
    name="acme",
    url="https://api.acme.example/v1",
    docs="",
    key_variables=("ACME_API_KEY",),
    url_variables=("ACME_BASE_URL",),
    quirks=frozenset({"max_tokens", "system_role"}),
)
acme = CompatibleProvider(ROW)
