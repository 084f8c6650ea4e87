"""The framing specification: the requests that the gateway's HTTP server must accept or refuse, rule by rule."""
