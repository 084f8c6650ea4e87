"""One Proofgate worker: configuration, lifecycle, admin port and command line.

Traffic never passes through this package. The data plane and the ledger are Rust threads in
`proofgate._core`.
"""

__all__ = ["__version__"]
#: The version of the core. It is repeated here because `proofgate --version` does not load the core.
__version__ = "0.1.0"
