"""Lock files of losses: a check in CI that no model accepts less of a conversation than before.

locks      the file, and the comparison of a rendering's losses with its entry
command    `sabir diff`: saved conversations
fixture    the pytest fixture `loss_lock`: conversations that a test creates
"""
