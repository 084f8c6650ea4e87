"""One Proofgate worker: configuration, lifecycle, admin port and command line.

Traffic never passes through this package: data plane and ledger are Rust threads in `proofgate._core`.
"""

__all__ = ["__version__"]
#: That of the core, which `proofgate --version` does not load.
__version__ = "0.1.0"
