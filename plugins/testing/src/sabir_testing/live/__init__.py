"""Live checks: a few cheap questions to a real service, with the user's key, and their results as a table.

    questions   the kit's questions as rows ──render──▶ a plan: rows to send, rows that the model does not support
    running     the plan ──▶ service ──▶ a RowResult for each row, and cassettes with `--save`
    display     the results as lines of 80 columns, or as JSON
    command     `sabir check`: estimate, confirmation, run

No module of this package imports pytest, so the command starts fast and runs outside of tests.
"""
