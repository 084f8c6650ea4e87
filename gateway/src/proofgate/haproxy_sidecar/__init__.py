"""The agent beside HAProxy, which applies changed files to the running HAProxy.

HAProxy loads its maps, its certificate and the weights of servers only at its start. The agent watches the
mounted files and syncs HAProxy with them over its runtime API, without a reload and without effect on
connections. A map or a certificate is changed completely or not at all.
"""
