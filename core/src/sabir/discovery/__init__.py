"""The installed plugins: found without an import, each loaded alone; a broken plugin stops no other."""
