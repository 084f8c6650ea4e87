"""What keeps the operator going: a loop per gateway, requeued by its objects, and the proof that it lives."""
