"""The entry point: `sabir.adapter("acme:…")` finds this object by the entry point's name in pyproject.toml.

Change: nothing, unless the vendor has a second endpoint that needs another provider name.
"""

from sabir.authoring import Provider

from sabir_acme.provider import Acme

acme: Provider = Acme()
