"""The base of all other rooms: errors, JSON values, deeply immutable models (law 11), losses."""
