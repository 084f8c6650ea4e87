"""How the C library's allocator treats memory that is given back.

glibc maps a large block by itself and unmaps it when it is freed, but raises the size from which it does so
to that of the largest block that was freed (mallopt(3), M_MMAP_THRESHOLD). After the first large request, the
bodies of all later ones would come out of heaps, which go back to the system from their end only.
"""

from __future__ import annotations

import ctypes

# mallopt(3); the names are macros, so nothing but their values can be asked for.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3

_MMAP_THRESHOLD_BYTES = 256 * 1024
# What a heap keeps at its end, so that requests do not move that to and fro.
_TRIM_THRESHOLD_BYTES = 4 * 1024 * 1024


def return_large_blocks() -> bool:
    """Has blocks of 256 KiB and more go back to the system whenever they are freed, for all threads.

    False where the C library has no such options, as musl, whose allocator does so anyway.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    mallopt.argtypes, mallopt.restype = (ctypes.c_int, ctypes.c_int), ctypes.c_int
    mapped: bool = mallopt(_M_MMAP_THRESHOLD, _MMAP_THRESHOLD_BYTES) == 1
    trimmed: bool = mallopt(_M_TRIM_THRESHOLD, _TRIM_THRESHOLD_BYTES) == 1
    return mapped and trimmed
