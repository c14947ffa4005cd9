"""What bytes and JSON values hold, whatever wire they are of."""
