"""Requests as applications, an agent and a careless user send them, for a gateway that shows what it can."""
