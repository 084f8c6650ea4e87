"""What a gateway does now: read by kubectl or from one worker's admin port, shown as text or JSON.

`seen` is what there is to know, `cluster`, `worker` and `limits` make it of what they are given, `text`
shows it.
"""
