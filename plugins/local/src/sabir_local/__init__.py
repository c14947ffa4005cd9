"""An embedded model for sabir, as `local:smollm2`. It needs no key and, once downloaded, no network."""
