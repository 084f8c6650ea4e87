"""Free ports that a server binds later."""

import socket

import pytest
from e2e.ports import END, FIRST, Ports, free_ports, slice_of


def test_no_two_processes_share_a_port_and_none_has_one_that_the_system_gives() -> None:
    slices = [slice_of(worker) for worker in ("", *(f"gw{number}" for number in range(7)))]
    ports = [port for one in slices for port in one]
    assert len(ports) == len(set(ports))
    assert min(ports) >= FIRST and max(ports) < END
    assert slice_of("gw7") == slice_of("gw0"), "more processes than slices still have ports"


def test_a_port_is_given_again_only_after_all_others_and_never_while_somebody_listens_on_it() -> None:
    three = free_ports(3)
    ports = Ports(three)
    assert sorted(ports.take(1) + ports.take(1) + ports.take(1)) == sorted(three)
    with socket.create_server(("127.0.0.1", three[0])):
        for _ in range(3):
            assert sorted(ports.take(2)) == sorted(three[1:])
        with pytest.raises(OSError, match="2 of 3 ports are free, and not 3"):
            ports.take(3)
    assert sorted(ports.take(3)) == sorted(three)
