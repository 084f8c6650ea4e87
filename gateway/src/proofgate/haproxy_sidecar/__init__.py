"""The agent beside HAProxy: what HAProxy reads at its start, it takes on while it runs.

HAProxy loads its maps and its certificate once, and no weights of servers but those of its configuration.
The agent follows the mounted files and brings HAProxy in step with them over its runtime API, without a
reload, and no connection notices. A map or a certificate is changed as a whole or not at all.
"""
