"""What a connection costs here: asyncio keeps 256 KiB for the data of each that is under TLS."""

from asyncio import sslproto

#: Two records of TLS (RFC 8446, section 5.1).
_BUFFER = 32 * 1024


def reduce_buffer_size() -> None:
    """Have the connections of this process do with less, those of kopf and of other libraries among them.

    Nothing but this attribute of a class says how large they are; a Python that has it no more keeps its own.
    """
    if hasattr(sslproto.SSLProtocol, "max_size"):
        sslproto.SSLProtocol.max_size = _BUFFER
