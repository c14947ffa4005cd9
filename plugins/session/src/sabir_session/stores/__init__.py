"""Named journals in a database: one logic, and an engine for each database."""
