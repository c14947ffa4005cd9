"""A process that dies in the middle of appending: everything whose append returned is there afterwards."""

KILLS = 6
