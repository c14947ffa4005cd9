"""The objects that a program holds: adapters and streams. One script without I/O for a call, two thin drivers."""
