"""`sabir chat` and `sabir chats`: talk to a model on the command line, and manage the saved conversations.

command ──▶ home (choose the conversation) ──▶ talk (send, show, recover) ──▶ shown · markdown
   └──────▶ loop ──▶ entry (the editor) · words (the slash commands)
chats ──▶ home · export
"""
