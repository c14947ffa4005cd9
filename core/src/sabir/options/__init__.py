"""Options: functions that a model may call. Arguments are validated, and exceptions become error results."""
