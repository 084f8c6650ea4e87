"""Load generators. Each runs one measurement on the load core and parses its tool's output.

`wrk` closes the loop, `open_loop` sends at a constant rate, `streams` keeps paced streams open.
"""
