"""The guard lets nothing through that a link must not open (faults, chapter D)."""

import pytest

from gossamer.engine.errors import SettingError
from gossamer.values.addresses import judge, judge_name, judge_port, kinds, networks, refusal, seeded

CLOSED = [
    "127.0.0.1",
    "127.8.9.1",
    "::1",
    "0.0.0.0",
    "0.1.2.3",
    "::",
    "10.1.2.3",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "169.254.1.1",
    "100.64.0.1",
    "198.18.0.1",
    "198.19.255.255",
    "224.0.0.1",
    "239.1.1.1",
    "240.0.0.1",
    "255.255.255.255",
    "192.0.2.1",
    "198.51.100.7",
    "203.0.113.9",
    "192.0.0.8",
    "fc00::1",
    "fdff::1",
    "fe80::1",
    "fec0::1",
    "ff02::1",
    "2001:db8::1",
    "3fff::1",
    "100::1",
    "4000::1",
    "64:ff9b:1::a00:1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:a9fe:a9fe",
    "::127.0.0.1",
    "::10.0.0.1",
    "64:ff9b::10.0.0.1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "2002:a00:1::1",
    "2001:0:a00:1::f7f7:f7f7",
    "2001:0:808:808::f5ff:fffe",
    "169.254.169.254",
    "100.100.100.200",
    "fd00:ec2::254",
    "168.63.129.16",
    "::ffff:169.254.169.254",
    "fe80::1%eth0",
    "nonsense",
    "127.1",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "2130706433",
]

OPEN = [
    "8.8.8.8",
    "93.184.216.34",
    "2606:4700::1111",
    "::ffff:8.8.8.8",
    "2002:808:808::",
    "64:ff9b::808:808",
    "172.32.0.1",
]


@pytest.mark.parametrize("address", CLOSED)
def test_closed_to_links(address: str) -> None:
    reason = judge(address)
    assert reason
    assert address not in reason, "the reason must not tell where"


@pytest.mark.parametrize("address", OPEN)
def test_public_is_open(address: str) -> None:
    assert judge(address) == ""


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "10.0.0.1", "192.168.0.1", "fd12::1", "::ffff:127.0.0.1"])
def test_seeds_open_loopback_and_private(address: str) -> None:
    assert judge(address, seed=True) == ""


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "fd00:ec2::254", "0.0.0.0", "224.0.0.1", "169.254.3.4", "fe80::1"]
)
def test_seeds_open_nothing_else(address: str) -> None:
    assert judge(address, seed=True)


def test_a_listed_network_opens_itself_and_no_metadata_service() -> None:
    listed = networks(["10.1.0.0/16", "169.254.0.0/16", "fd00::/8"])
    assert judge("10.1.2.3", listed) == ""
    assert judge("::ffff:10.1.2.3", listed) == ""
    assert judge("10.2.0.1", listed) == "a private address"
    assert judge("169.254.169.254", listed) == "a metadata address"
    assert judge("fd00:ec2::254", listed) == "a metadata address"


def test_teredo_is_judged_by_server_and_client() -> None:
    assert kinds("2001:0:808:808::f5ff:fffe") == {"public", "private"}


def test_one_closed_address_closes_the_name() -> None:
    assert refusal(["8.8.8.8", "10.0.0.1"], (), seed=False, only_loopback=False) == "a private address"
    assert refusal(["8.8.8.8", "1.1.1.1"], (), seed=False, only_loopback=False) == ""
    assert refusal(["8.8.8.8"], (), seed=True, only_loopback=True) == "off loopback"
    assert refusal(["127.0.0.1"], (), seed=True, only_loopback=True) == ""


@pytest.mark.parametrize("port", [22, 25, 53, 6379, 9200, 11211, 8265, 0, 65536])
def test_ports_that_are_never_dialled(port: int) -> None:
    assert judge_port(port)
    assert bool(judge_port(port, explicit=True)) == (port in (0, 65536))


@pytest.mark.parametrize("port", [80, 443, 8000, 8080, 21, 70])
def test_ports_that_are(port: int) -> None:
    assert judge_port(port) == ""


@pytest.mark.parametrize("name", ["localhost", "a.localhost", "printer.local", "db.internal", "intranet", "localhost."])
def test_names_of_the_local_network_are_refused_unless_seeds(name: str) -> None:
    assert judge_name(name)
    assert judge_name(name, seed=True) == ""


@pytest.mark.parametrize(
    "name", ["", "a..b.org", "a b.org", "a$b.org", "x" * 64 + ".org", "[::1]", "a/b", ".", "a@b.org"]
)
def test_what_is_no_host_name_is_never_asked_for(name: str) -> None:
    assert judge_name(name, seed=True)


@pytest.mark.parametrize(
    "name", ["example.org", "example.org.", "a_b.example.org", "xn--bcher-kva.example", "1.2.3.4", "::1"]
)
def test_host_names(name: str) -> None:
    assert judge_name(name) == ""


def test_a_seed_opens_its_own_name_and_port() -> None:
    assert seeded("a.test", 8000, {"a.test:8000"})
    assert not seeded("a.test", 9000, {"a.test:8000"})
    assert seeded("a.test", 9000, {"a.test"})
    assert seeded("::1", 80, {"[::1]:80"})


def test_a_network_that_is_none_is_refused_in_words() -> None:
    with pytest.raises(SettingError, match=r"10\.0\.0\.0/33.*write it as"):
        networks(["10.0.0.0/33"])
