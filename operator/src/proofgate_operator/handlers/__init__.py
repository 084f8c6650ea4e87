"""Loops that reconcile the gateways, the events that requeue them, and the health checks of the process."""
