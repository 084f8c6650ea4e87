"""Demonstration traffic: requests like those of applications, an agent and a careless user."""
