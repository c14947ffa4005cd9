"""`sabir chat` and `sabir chats`: talk to a model on the command line, and manage the saved conversations.

command ──▶ home (which conversation) ──▶ talk (say, show, recover) ──▶ shown · markdown
   └──────▶ loop ──▶ entry (the editor) · words (/help …)
chats ──▶ home · export
"""
