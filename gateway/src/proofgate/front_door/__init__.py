"""The agent beside HAProxy: what HAProxy reads at its start, it takes on while it runs.

HAProxy loads its maps and its certificate once. The agent follows the mounted files and brings HAProxy in
step with them over its runtime API: as a whole or not at all, without a reload, and no connection notices.
"""
