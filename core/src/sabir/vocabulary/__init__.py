"""The data: messages and their parts, settings, replies, targets. It makes no calls and knows no wire."""
