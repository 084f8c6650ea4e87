"""Benchmarks of coding agents' requests.

`session` makes the requests, `tools` and `results` their content, `scenarios` the measurements of every system,
`load` runs the generator, and `figures` compares with plain HAProxy.
"""
