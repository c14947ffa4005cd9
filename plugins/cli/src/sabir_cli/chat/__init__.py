"""`sabir chat` and `sabir chats`: a conversation on the command line, and those that are kept.

command ──▶ home (which conversation) ──▶ talk (say, show, recover) ──▶ shown · markdown
   └──────▶ loop ──▶ entry (the editor) · words (/help …)
chats ──▶ home · export
"""
