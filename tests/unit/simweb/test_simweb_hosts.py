"""Hosts: sizes by a power law in closed form, names and addresses that lead back."""

from itertools import pairwise

import pytest

from gossamer.simweb import SimWeb, WebSpec
from gossamer.simweb.hosts import SimHosts

SPECS = [WebSpec(pages=1, hosts=1), WebSpec(pages=50, hosts=50), WebSpec(pages=20_000, hosts=300)]


@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_every_page_belongs_to_exactly_one_host_and_no_host_is_empty(spec: WebSpec) -> None:
    hosts = SimHosts(spec)
    bases = [hosts.base(rank) for rank in range(len(hosts) + 1)]
    assert bases[0] == 0
    assert bases[spec.hosts] == spec.pages
    assert bases[-1] == hosts.pages
    assert all(low < high for low, high in pairwise(bases))


@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_a_name_and_an_own_address_lead_back_to_their_host_alone(spec: WebSpec) -> None:
    hosts = SimHosts(spec)
    names = [hosts.name(rank) for rank in range(len(hosts))]
    addresses = [hosts.own_address(rank) for rank in range(len(hosts))]
    assert [hosts.rank_of_name(name) for name in names] == list(range(len(hosts)))
    assert [hosts.rank_of_name(address) for address in addresses] == list(range(len(hosts)))
    assert len(set(names)) == len(set(addresses)) == len(hosts)


@pytest.mark.parametrize(
    "name",
    [
        *("", "sim", "amber0.sim", "www.amber00.sim", "www.birch0.sim", "www.amber0.example", "www.mirror99.sim"),
        *("127.128.0.0", "127.128.1.256", "127.1.0.1", "128.0.0.1", "www.amber999999999.sim", "docs.amber0.sim"),
    ],
)
def test_a_name_that_no_host_has_is_not_answered(name: str) -> None:
    assert SimHosts(WebSpec()).rank_of_name(name) is None


def test_host_sizes_follow_the_power_law_asked_for() -> None:
    hosts = SimHosts(WebSpec(pages=10_000_000, hosts=1000, host_exponent=1.8))
    # Where sizes have density x^-1.8, the host of rank r has about r^(-1/0.8) of the largest.
    ratio = hosts.size(99) / hosts.size(399)
    assert ratio == pytest.approx((400 / 100) ** 1.25, rel=0.05)


def test_a_hundred_million_pages_need_no_table_of_pages() -> None:
    web = SimWeb(WebSpec(pages=100_000_000, hosts=10_000))
    host = web.hosts.host(9_999)
    assert host.base + host.size == 100_000_000


def test_several_hosts_share_a_domain_and_an_address() -> None:
    hosts = SimHosts(WebSpec(pages=1000, hosts=64, hosts_per_address=4))
    count = len(hosts)
    assert len({hosts.domain(rank) for rank in range(count)}) < count
    assert len({hosts.address(rank) for rank in range(count)}) == -(-count // 4)
