"""Settings of the C library's allocator for freed memory.

glibc maps a large block separately and unmaps it when it is freed. The threshold for this rises to the size
of the largest freed block (mallopt(3), M_MMAP_THRESHOLD). After the first large request, the bodies of all
later requests would come from heaps, which return memory to the system only from their end.
"""

from __future__ import annotations

import ctypes

# Parameters of mallopt(3). Their names are C macros, so only the values are available here.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3

_MMAP_THRESHOLD_BYTES = 256 * 1024
# Free bytes that a heap keeps at its end, so that requests do not grow and shrink it repeatedly.
_TRIM_THRESHOLD_BYTES = 4 * 1024 * 1024


def return_large_blocks() -> bool:
    """Makes all threads return blocks of 256 KiB and more to the system as soon as they are freed.

    Returns False if the C library has no such option. One example is musl, whose allocator always returns
    these blocks.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    mallopt.argtypes, mallopt.restype = (ctypes.c_int, ctypes.c_int), ctypes.c_int
    mapped: bool = mallopt(_M_MMAP_THRESHOLD, _MMAP_THRESHOLD_BYTES) == 1
    trimmed: bool = mallopt(_M_TRIM_THRESHOLD, _TRIM_THRESHOLD_BYTES) == 1
    return mapped and trimmed
