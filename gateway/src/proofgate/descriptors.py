"""The limit of open files of this process.

A process may raise its soft limit to the hard limit (getrlimit(2)). systemd sets a soft limit of 1024 and a
much higher hard limit.
"""

from __future__ import annotations

import logging
import resource

log = logging.getLogger("proofgate")

#: Maximum number of descriptors to request: programs that check each possible descriptor would take seconds.
MAX_DESCRIPTORS = 1 << 20


def raise_descriptor_limit() -> None:
    """Raises the soft limit of open files to the hard limit, at most 1,048,576. On failure the limit stays
    unchanged."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if soft == resource.RLIM_INFINITY or soft >= most:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    except (OSError, ValueError) as error:
        log.warning("cannot raise the limit of open files above %d: %s", soft, error)
