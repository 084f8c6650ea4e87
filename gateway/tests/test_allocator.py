"""The allocator returns freed memory to the system."""

from __future__ import annotations

import subprocess
import sys

# A large block is freed, as the body of a large request is. If the next block is mapped instead of allocated
# from a heap, it increases the mapped bytes of mallinfo2(3).
PROGRAM = """
import ctypes
from proofgate import allocator

class Info(ctypes.Structure):
    _fields_ = [(f"field{number}", ctypes.c_size_t) for number in range(10)]

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
libc.mallinfo2.restype = Info
assert allocator.return_large_blocks()
libc.free(libc.malloc(16 << 20))
before = libc.mallinfo2().field4
block = libc.malloc(8 << 20)
print(libc.mallinfo2().field4 - before >= 8 << 20)
"""


def test_a_large_block_is_mapped_by_itself_also_after_a_larger_one_was_freed() -> None:
    printed = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True
    ).stdout
    assert printed == "True\n"
