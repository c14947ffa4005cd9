"""A conversation as a program holds it: asked, streamed, kept, forked, and carried on by any model."""
