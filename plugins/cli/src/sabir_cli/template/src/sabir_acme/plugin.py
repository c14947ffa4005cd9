"""The entry point: `sabir.adapter("acme:…")` finds this object by the name that pyproject.toml gives it.

Change: nothing, unless the vendor has a second endpoint that deserves a name of its own.
"""

from sabir.authoring import Provider

from sabir_acme.provider import Acme

acme: Provider = Acme()
