"""What keeps the operator going: one loop per gateway, wake-ups from its objects, and the proof that it
lives."""
