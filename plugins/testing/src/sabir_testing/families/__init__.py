"""The cases, by family: each class one, each test method a rule of its wire or a law."""
