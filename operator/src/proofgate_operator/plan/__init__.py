"""Decisions as pure functions from the observed state to the writes.

Nothing here does I/O or reads the clock, so an operator may be killed between any two writes: the next
process observes the current state and decides again.
"""
