"""Reduces the memory of TLS connections: asyncio keeps a buffer of 256 KiB for each."""

from asyncio import sslproto

#: The size of two TLS records (RFC 8446, section 5.1).
_BUFFER = 32 * 1024


def reduce_buffer_size() -> None:
    """Reduce the buffers of all TLS connections of this process, including those of kopf and other libraries.

    Only this class attribute sets the buffer size. If a Python version does not have it, its default applies.
    """
    if hasattr(sslproto.SSLProtocol, "max_size"):
        sslproto.SSLProtocol.max_size = _BUFFER
