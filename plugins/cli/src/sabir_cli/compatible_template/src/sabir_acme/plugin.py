"""The entry point: `sabir.adapter("acme:model")` finds this object by the entry point's name in pyproject.toml.

    one row of data ──▶ CompatibleProvider        sabir-openai has the dialect, SDK client, error table and streaming

Change: the row. A quirk is a difference of the endpoint from Chat Completions; QUIRKS in sabir_openai.chat_dialect
explains each quirk. The two quirks below are safe for every endpoint. If yours needs others, the conformance tests fail
without them.
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
