"""OpenTelemetry: traces and metrics of a worker, sent to a collector by a separate thread.

Only that thread imports OpenTelemetry's packages, and only when a collector is configured.
"""
