"""Keeps the last accepted configuration file for workers that start and refuse the newest file.

A running worker that refuses a file keeps its previous one. A starting worker has no previous file. Without
this copy, a file with a defect that only workers find would stop each worker that restarts.
"""

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build.naming import names
from proofgate_operator.build.worker_config import ACCEPTED_FILE, text_digest
from proofgate_operator.plan.observed_state import ObservedState
from proofgate_operator.plan.ownership import Ownership, classify
from proofgate_operator.plan.shards import read_shards

#: Maximum size of both files together in bytes: a ConfigMap holds 1 MiB.
_MAX_CONFIG_BYTES = 1_000_000


def accepted_config_text(gateway: Gateway, seen: ObservedState, text: str) -> str | None:
    """Return the newest file that every ready worker has accepted; `text` is the newest file of all.

    None if there is no such file yet, or if both files together are too large.
    """
    live = seen.child("ConfigMap", names(gateway).config)
    ours = live is not None and classify(gateway, live) is Ownership.OURS
    before = (live.get("data") or {}).get(ACCEPTED_FILE) if live and ours else None
    ready = [shard for shard in read_shards(seen, None) if shard.ready]
    running = {shard.report.file_digest if shard.report else "" for shard in ready}
    found = text if running == {text_digest(text)} else before
    fits = found is not None and len(text.encode()) + len(found.encode()) <= _MAX_CONFIG_BYTES
    return found if fits else None
