"""Planning: whatever does not fit is found before anything starts, all at once, with file and key."""

from collections.abc import Iterator
from typing import Protocol

import pytest

from gossamer.engine.component import AsynchronousFilter, Consumer, Filter, Producer, SynchronousFilter
from gossamer.engine.ends import In, Out, Uses, UsesMany
from gossamer.engine.errors import WiringError
from gossamer.engine.graph import Graph
from gossamer.engine.planning import Catalog, plan
from gossamer.engine.sheet import Sheet
from gossamer.engine.unit import Provider
from gossamer.engine.wiring import parse


class Resolver(Protocol):
    """An interface."""

    def resolve(self, host: str, port: int) -> str: ...

    def forget(self) -> None: ...


class CountSheet(Sheet, frozen=True):
    count: int = 3


class Count(Producer[CountSheet]):
    outbox: Out[int]

    def produce(self) -> Iterator[int]:
        yield from range(self.sheet.count)


class Truths(Producer):
    outbox: Out[bool]

    def produce(self) -> Iterator[bool]:
        yield True


class Pass(Filter):
    inbox: In[int]
    outbox: Out[int]

    def filter(self, item: int) -> list[int]:
        return [item]


class Words(Filter):
    inbox: In[str]
    outbox: Out[bool]

    def filter(self, item: str) -> list[bool]:
        return [True]


class Keep(Consumer):
    inbox: In[int]

    def consume(self, item: int) -> None: ...


class Asking(Consumer):
    inbox: In[int]
    resolver: Uses[Resolver]
    by_scheme: UsesMany[Resolver]

    def consume(self, item: int) -> None: ...


class Pair(SynchronousFilter):
    a: In[int]
    b: In[int]

    def filter(self, a: int, b: int) -> None: ...


class Back(AsynchronousFilter):
    seeds: In[int]
    back: In[int]
    outbox: Out[int]
    spills = frozenset({"back"})

    def on_seeds(self, item: int) -> None: ...

    def on_back(self, item: int) -> None: ...

    def take_outbox(self, free: int) -> list[int]:
        return []


class Hoard(Back):
    spills = frozenset()


class Makes(Producer):
    outbox: Out[Resolver]

    def produce(self) -> Iterator[Resolver]:
        yield from ()


class Takes(Consumer):
    inbox: In[Resolver]

    def consume(self, item: Resolver) -> None: ...


class Broken(Consumer):
    inbox: In[int]


class Dns(Provider):
    keeps_state = True

    def resolve(self, host: str, port: int) -> str:
        return host

    def forget(self) -> None: ...


class Cached(Dns):
    behind: Uses[Resolver]


class Half(Provider):
    def resolve(self, host: str) -> str:
        return host


class Demanding(Dns):
    def resolve(self, host: str, port: int, secret: str) -> str:  # type: ignore[override]
        return host


CATALOG = Catalog(
    {
        "count": Count,
        "truths": Truths,
        "pass": Pass,
        "words": Words,
        "keep": Keep,
        "asking": Asking,
        "pair": Pair,
        "back": Back,
        "hoard": Hoard,
        "makes": Makes,
        "takes": Takes,
        "broken": Broken,
    },
    {"dns": Dns, "cached": Cached, "half": Half, "demanding": Demanding},
)

COUNT = "[components.count]\nuse='count'\nports={outbox='numbers'}\n[connectors.numbers]\n"
KEEP = "[components.keep]\nuse='keep'\nports={inbox='numbers'}\n"
SOUND = COUNT + KEEP
ASKING = "[components.asking]\nuse='asking'\nports={inbox='numbers'}\n"


def planned(text: str) -> Graph:
    return plan(parse(text, "w.toml"), CATALOG)


def findings(text: str) -> list[str]:
    with pytest.raises(WiringError) as caught:
        planned(text)
    return str(caught.value).splitlines()


def test_a_sound_plan_becomes_a_graph() -> None:
    graph = planned(SOUND)
    assert graph.components["count"].kind == "producer"
    assert graph.components["count"].sheet == CountSheet()
    assert graph.connectors["numbers"].producers == ("count",)
    assert graph.connectors["numbers"].consumers == ("keep",)
    assert graph.connectors["numbers"].item_name == "int"


def test_providers_start_before_those_that_use_them() -> None:
    text = COUNT + ASKING + "providers={resolver='a', by_scheme={http=['b','c']}}\n"
    for name, rest in (("a", "use='cached'\nproviders={behind='b'}"), ("b", "use='cached'\nproviders={behind='c'}")):
        text += f"[providers.{name}]\n{rest}\n"
    graph = planned(text + "[providers.c]\nuse='dns'\n")
    assert [*graph.providers] == ["c", "b", "a"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["w.toml: components: there are none; a wiring needs at least one"]),
        (
            SOUND.replace("'count'", "'cuont'"),
            ["w.toml: components.count.use: unknown component 'cuont'; did you mean 'count'? Known: asking, back, "],
        ),
        (
            SOUND + "[providers.d]\nuse='dsn'\n",
            [
                "w.toml: providers.d.use: unknown provider 'dsn'; did you mean 'dns'? Known: cached, demanding, dns, half"
            ],
        ),
        (
            SOUND + "[components.count.settings]\ncuont=1\n",
            ["w.toml: components.count.settings: unknown setting 'cuont'; did you mean 'count'? Known: count"],
        ),
        (
            SOUND + "[components.count.settings]\ncount='many'\n",
            [
                "w.toml: components.count.settings: setting 'count': 'many' is not a quantity; write a plain number, as 3 or 0.5"
            ],
        ),
        (
            COUNT + KEEP.replace("inbox", "ibox"),
            [
                "w.toml: components.keep.ports: unknown port 'ibox'; did you mean 'inbox'? Known: inbox",
                "w.toml: components.keep.ports: port 'inbox' of 'keep' is not bound; name a connector for it",
            ],
        ),
        (
            COUNT + KEEP.replace("numbers", "number"),
            [
                "w.toml: components.keep.ports.inbox: there is no connector 'number'; did you mean 'numbers'? Known: numbers"
            ],
        ),
        (
            SOUND + "[connectors.spare]\n",
            ["w.toml: connectors.spare: nothing produces into it; bind a port to it or remove it"],
        ),
        (COUNT, ["w.toml: connectors.numbers: nothing consumes from it; bind a port to it or remove it"]),
        (
            SOUND + "[providers.d]\nuse='dns'\n",
            ["w.toml: providers.d: nothing uses it; bind a role to it or remove it"],
        ),
        (
            COUNT + "[components.words]\nuse='words'\nports={inbox='numbers',outbox='truths'}\n[connectors.truths]\n"
            "[components.keep]\nuse='keep'\nports={inbox='truths'}\n",
            ["w.toml: connectors.numbers: count.outbox makes int, but words.inbox takes str; bind ports of one type"],
        ),
        (
            SOUND.replace("use='keep'", "use='keep'\nproviders={resolver='d'}") + "[providers.d]\nuse='dns'\n",
            ["w.toml: components.keep.providers: unknown role 'resolver'; known: none"],
        ),
        (
            COUNT + ASKING + "providers={resolver='d'}\n[providers.d]\nuse='dns'\n",
            ["w.toml: components.asking.providers: role 'by_scheme' is not bound; name a provider of Resolver"],
        ),
        (
            COUNT + ASKING + "providers={resolver='dd', by_scheme={http='d'}}\n[providers.d]\nuse='dns'\n",
            ["w.toml: components.asking.providers.resolver: there is no provider 'dd'; did you mean 'd'? Known: d"],
        ),
        (
            COUNT + ASKING + "providers={resolver={http='d'}, by_scheme='d'}\n[providers.d]\nuse='dns'\n",
            [
                "w.toml: components.asking.providers.resolver: is {'http': 'd'}; it takes one provider's name",
                "w.toml: components.asking.providers.by_scheme: is 'd'; it takes a table of key = provider names",
            ],
        ),
        (
            COUNT + ASKING + "providers={resolver='h', by_scheme={http=['h']}}\n[providers.h]\nuse='half'\n",
            [
                f"w.toml: components.asking.providers.{role}: provider 'h' (Half) is not a Resolver: it lacks forget(), resolve("
                for role in ("resolver", "by_scheme.http")
            ],
        ),
        (
            COUNT + ASKING + "providers={resolver='d', by_scheme={}}\n[providers.d]\nuse='demanding'\n",
            [
                "w.toml: components.asking.providers.resolver: provider 'd' (Demanding) is not a Resolver: it lacks resolve(host,"
            ],
        ),
        (
            COUNT + ASKING + "providers={resolver='a', by_scheme={}}\n"
            "[providers.a]\nuse='cached'\nproviders={behind='b'}\n[providers.b]\nuse='cached'\nproviders={behind='a'}\n",
            ["w.toml: providers: depend on each other in a circle: "],
        ),
        (
            COUNT
            + "[connectors.more]\n[components.back]\nuse='hoard'\nports={seeds='numbers',back='more',outbox='ring'}\n"
            "[connectors.ring]\n[components.pass]\nuse='pass'\nports={inbox='ring',outbox='more'}\n",
            ["w.toml: components: "],
        ),
        (
            SOUND.replace("[connectors.numbers]", "[connectors.numbers]\naddress='fused:'")
            + KEEP.replace("components.keep", "components.too"),
            ["w.toml: connectors.numbers.address: fused: takes one consumer of one instance; use local: for several"],
        ),
        (
            SOUND.replace("[connectors.numbers]", "[connectors.numbers]\naddress='fused:'") + "instances=2\n",
            ["w.toml: connectors.numbers.address: fused: takes one consumer of one instance; use local: for several"],
        ),
        (
            COUNT.replace("[connectors.numbers]", "[connectors.numbers]\naddress='fused:'")
            + "[components.pair]\nuse='pair'\nports={a='numbers', b='numbers'}\n",
            ["w.toml: connectors.numbers.address: fused: takes one consumer of one instance; use local: for several"],
        ),
        (
            SOUND + "process='other'\n",
            [
                "w.toml: connectors.numbers.address: 'local:' joins processes main, other; give it a unix: or tcp: address"
            ],
        ),
        (
            COUNT.replace("[connectors.numbers]", "[connectors.numbers]\naddress='unix:/x'")
            + ASKING
            + "providers={resolver='d', by_scheme={}}\n"
            + ASKING.replace("components.asking", "components.too")
            + "process='other'\nproviders={resolver='d', by_scheme={}}\n"
            "[providers.d]\nuse='dns'\n",
            [
                "w.toml: providers.d: keeps state and is used from processes main, other; give each process a provider of its own"
            ],
        ),
        (
            SOUND.replace("use='count'", "use='count'\nworkers=4"),
            ["w.toml: components.count.workers: is 4, but 'count' is of kind producer; only filters and consumers"],
        ),
        (
            COUNT + ASKING + "providers={resolver='count', by_scheme={}}\n[providers.count]\nuse='dns'\n",
            ["w.toml: providers.count: a component has this name too; give one of them another"],
        ),
        (
            COUNT + KEEP.replace("use='keep'", "use='broken'"),
            ["w.toml: components.keep.use: class Broken has to define one of these: consume, consume_many"],
        ),
    ],
)
def test_what_does_not_fit_is_named_with_file_key_and_what_would_be_right(text: str, expected: list[str]) -> None:
    found = findings(text)
    assert len(found) == len(expected), found
    for line, beginning in zip(found, expected, strict=True):
        assert line.startswith(beginning)


def test_a_ring_is_told_in_the_order_of_its_arrows() -> None:
    [found] = findings(
        COUNT + "[connectors.more]\n[components.back]\nuse='hoard'\nports={seeds='numbers',back='more',outbox='ring'}\n"
        "[connectors.ring]\n[components.pass]\nuse='pass'\nports={inbox='ring',outbox='more'}\n"
    )
    assert "back -> pass -> back" in found or "pass -> back -> pass" in found
    assert found.endswith("is a ring in which no input spills to disk, so it can deadlock; let one input on it spill")


def test_a_ring_through_a_spill_is_sound() -> None:
    assert planned(
        COUNT + "[connectors.more]\n[components.back]\nuse='back'\nports={seeds='numbers',back='more',outbox='ring'}\n"
        "[connectors.ring]\n[components.pass]\nuse='pass'\nports={inbox='ring',outbox='more'}\n"
    )


def test_a_subclass_may_go_where_its_base_is_taken() -> None:
    text = COUNT + "[components.pass]\nuse='pass'\nports={inbox='numbers',outbox='same'}\n[connectors.same]\n"
    text = text.replace("use='count'", "use='truths'") + KEEP.replace("numbers", "same")
    assert planned(text).connectors["numbers"].item_type is int


def test_an_item_type_without_codec_is_refused_on_local_connectors_too() -> None:
    [found] = findings(COUNT.replace("use='count'", "use='makes'") + KEEP.replace("use='keep'", "use='takes'"))
    assert found.startswith(
        "w.toml: connectors.numbers: items of type Resolver have no codec, so they could not cross a process"
    )


def test_several_findings_are_told_at_once() -> None:
    found = findings(
        COUNT.replace("'count'", "'cuont'")
        + KEEP.replace("inbox=", "ibox=")
        + "[providers.d]\nuse='dsn'\n[components.words]\nuse='words'\nports={inbox='numbers'}\n"
    )
    keys = [line.split(": ")[1] for line in found]
    assert keys == ["providers.d.use", "components.count.use", *["components.keep.ports"] * 2, "components.words.ports"]


# -- when a component raises

PASS = "[components.pass]\nuse='pass'\nports={inbox='numbers', outbox='passed'}\n"
THROUGH = COUNT + "[connectors.passed]\n" + PASS + "%s[components.keep]\nuse='keep'\nports={inbox='passed'}\n"


def test_a_component_of_ones_own_sets_items_aside_unless_the_wiring_says_otherwise() -> None:
    own = Catalog({"count": Count, "keep": Keep})
    own.add("pass", Pass)
    assert {name: node.on_error for name, node in plan(parse(THROUGH % ""), own).components.items()} == {
        "count": "stop",
        "pass": "skip",
        "keep": "stop",
    }
    assert plan(parse(THROUGH % "on_error = 'stop'\n"), own).components["pass"].on_error == "stop"
    assert planned(THROUGH % "on_error = 'skip'\n").components["pass"].on_error == "skip"
    own.add("keep", Keep)
    assert plan(parse(SOUND), own).components["keep"].on_error == "skip", "nothing comes after a consumer"


def test_an_item_that_could_not_go_on_is_never_skipped() -> None:
    own = Catalog({"pair": Pair, "keep": Keep})
    own.add("count", Count)
    assert plan(parse(SOUND), own).components["count"].on_error == "stop"
    (finding,) = findings(SOUND.replace("use='count'", "use='count'\non_error='skip'"))
    assert finding.startswith("w.toml: components.count.on_error: 'skip' lets an item go on without the component")
