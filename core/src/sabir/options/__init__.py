"""What a model may choose, and how a choice is answered: arguments are validated first, an exception is a result."""
