"""One typed message vocabulary; every provider a plugin."""
