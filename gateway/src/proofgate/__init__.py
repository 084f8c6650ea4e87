"""One Proofgate worker: configuration, lifecycle, admin port and command line.

Traffic never passes through this package: data plane and ledger are Rust threads in `proofgate._core`.
"""

from proofgate._core import __version__

__all__ = ["__version__"]
