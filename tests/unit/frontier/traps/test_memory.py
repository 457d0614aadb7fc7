"""What is known of the parts of a host, and which of them are suspected."""

from gossamer.frontier.traps.memory import PARTS_OF_HOST, Memory, PartState, TrapHost

HOST = "www.a.test"


def with_parts(names: list[str]) -> tuple[Memory, TrapHost]:
    memory = Memory(parts=10_000, hosts=10)
    host = memory.host(HOST)
    for name in names:
        memory.part(HOST, host, name, 0)
    return memory, host


def test_suspects_are_those_that_were_turned_to_and_not_back_the_widest_first() -> None:
    _, host = with_parts(["/a/b/#", "/a/#", "/c/#"])
    assert host.suspects == ()
    host.turn(host.parts["/a/b/#"], PartState.SUSPECT)
    host.turn(host.parts["/a/#"], PartState.SUSPECT)
    assert host.suspects == ("/a/#", "/a/b/#")
    host.turn(host.parts["/a/#"], PartState.TRUSTED)
    host.turn(host.parts["/c/#"], PartState.TRUSTED)
    assert host.suspects == ("/a/b/#",)


def test_a_host_full_of_suspects_keeps_them_and_takes_no_more_parts() -> None:
    names = [f"/d{number}/#" for number in range(PARTS_OF_HOST)]
    memory, host = with_parts(names)
    for name in names:
        host.turn(host.parts[name], PartState.SUSPECT)
    assert len(host.suspects) == PARTS_OF_HOST
    memory.part(HOST, host, "/one/more/#", 0)
    assert "/one/more/#" not in host.parts
    assert all(name in host.parts for name in host.suspects)
