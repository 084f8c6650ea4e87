"""Load generators: each runs one measurement on the load core and reads what its tool printed.

`wrk` closes the loop, `open_loop` sends at a constant rate, `streams` keeps paced streams open.
"""
