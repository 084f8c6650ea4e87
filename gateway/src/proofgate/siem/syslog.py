"""Events as syslog messages (RFC 5424): over TLS (RFC 5425) or TCP with octet counting (RFC 6587 section
3.4.1), or in datagrams (RFC 5426).

Syslog has no acknowledgement. Over TCP and TLS each batch is a connection of its own: that the receiver
closes it in turn says that it has read to its end. What it does then with what it has read, nobody learns.
"""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from proofgate.index.schema import time_text
from proofgate.siem.events import Event
from proofgate.siem.sink import SinkError, is_notable

#: "log audit" of RFC 5424 section 6.2.1.
_FACILITY = 13
_WARNING, _INFORMATIONAL = 4, 6
_SECONDS = 30.0
#: What a datagram of IPv4 can hold.
_MOST_DATAGRAM = 65_507


def message(event: Event, host: str) -> bytes:
    """An event as a message. Its text is JSON in ASCII, so that it needs no mark of an encoding."""
    priority = _FACILITY * 8 + (_WARNING if is_notable(event) else _INFORMATIONAL)
    head = f"<{priority}>1 {time_text(event.time)} {host} proofgate - exchange - "
    told = event.facts | {"record": {"origin": event.origin, "index": event.index}}
    return head.encode() + json.dumps(told, ensure_ascii=True, separators=(",", ":")).encode()


def own_name() -> str:
    """This host, as a message names it: printable ASCII, or `-`."""
    name = socket.gethostname()[:255]
    return name if name and all("!" <= character <= "~" for character in name) else "-"


class Stream:
    """A receiver over TCP or, with `tls`, TLS."""

    def __init__(self, name: str, host: str, port: int, *, tls: bool, authorities: Path | None) -> None:
        self.name, self._address, self._tls, self._authorities = name, (host, port), tls, authorities
        self._host = own_name()

    def send(self, events: Sequence[Event]) -> None:
        """See `Sink`."""
        frames = b"".join(
            b"%d %s" % (len(one), one) for one in (message(event, self._host) for event in events)
        )
        try:
            with socket.create_connection(self._address, _SECONDS) as connection:
                if not self._tls:
                    connection.sendall(frames)
                    connection.shutdown(socket.SHUT_WR)
                    self._read_to_the_end(connection)
                    return
                context = ssl.create_default_context(cafile=self._authorities)
                with context.wrap_socket(connection, server_hostname=self._address[0]) as secured:
                    secured.sendall(frames)
                    # Says that this is all, and waits until the other side does, or closes without a word, as
                    # rsyslog with GnuTLS.
                    with suppress(ssl.SSLEOFError):
                        secured.unwrap()
        except ssl.SSLCertVerificationError as error:
            raise SinkError("siem_tls", f"its certificate is not trusted: {error.verify_message}") from None
        except ssl.SSLError:
            raise SinkError("siem_tls", "TLS fails, or it broke the connection off") from None
        except OSError as error:
            why = error.strerror or "it does not answer in time"
            raise SinkError("siem_unreachable", f"it is not reachable, or broke off: {why}") from None

    @staticmethod
    def _read_to_the_end(connection: socket.socket) -> None:
        while connection.recv(4096):
            pass


class Datagrams:
    """A receiver over UDP: nobody learns what arrives."""

    def __init__(self, name: str, host: str, port: int) -> None:
        self.name, self._address = name, (host, port)
        self._host = own_name()

    def send(self, events: Sequence[Event]) -> None:
        """See `Sink`."""
        try:
            family, kind, _, _, address = socket.getaddrinfo(*self._address, type=socket.SOCK_DGRAM)[0]
            with socket.socket(family, kind) as out:
                for event in events:
                    out.sendto(message(event, self._host)[:_MOST_DATAGRAM], address)
        except OSError as error:
            raise SinkError("siem_unreachable", f"it is not reachable: {error.strerror}") from None
