"""An embedded model for sabir: no key, no network."""
