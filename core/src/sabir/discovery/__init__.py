"""Which plugins are installed: found without an import, loaded alone; a broken one stops no other."""
