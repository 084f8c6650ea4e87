"""What coding agents send, and how fast it passes.

`session` makes the requests, `tools` and `results` what they are full of, `scenarios` what is asked of every system,
`load` runs the generator, and `figures` compares with plain HAProxy.
"""
