"""Hooks: functions of plugins that are called when messages are built and when calls are made."""
