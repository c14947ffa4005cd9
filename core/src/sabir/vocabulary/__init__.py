"""All that is data: messages and their parts, settings, replies, targets. It calls nobody and knows no wire."""
