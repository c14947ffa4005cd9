"""What everything stands on: errors, JSON values, frozen models that nothing can change (law 11), losses."""
