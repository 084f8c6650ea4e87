"""The status of a gateway, read with kubectl or from one worker's admin port, and shown as text or JSON.

`status_model` has the data types, `cluster`, `worker` and `limits` read the status, and `text` formats it.
"""
