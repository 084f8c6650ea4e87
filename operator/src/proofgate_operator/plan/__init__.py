"""Decisions as pure functions: what was seen goes in, what to write comes out.

Nothing here does I/O or knows the clock, so an operator may be killed between any two writes: its successor
sees the world as it is and decides anew.
"""
