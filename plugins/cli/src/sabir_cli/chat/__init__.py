"""`sabir chat` and `sabir chats`: talk to a model on the command line, and manage the saved conversations.

command ──▶ home (choose the conversation) ──▶ console_chat (send, show, recover) ──▶ answer_printer · markdown
   └──────▶ loop ──▶ message_reader (the editor) · slash_commands
chats ──▶ home · export
"""
