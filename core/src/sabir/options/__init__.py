"""Options, and how their calls are answered: arguments are validated first, an exception becomes an error result."""
