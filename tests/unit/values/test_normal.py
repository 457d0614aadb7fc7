"""Normal forms: which spellings are one page, and which stay apart."""

import random

import pytest

from gossamer.parsing.links import shipped_parameters
from gossamer.values.url import canonical
from gossamer.values.url_normalization import STEPS, USUAL, Normaliser, Step, read_parameters

ALL = Normaliser(STEPS, shipped_parameters())
PLAIN = Normaliser(USUAL, shipped_parameters())
NONE = Normaliser((), shipped_parameters())


def folded(text: str, normaliser: Normaliser = PLAIN) -> str:
    return normaliser(canonical(text))


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        # Ridgway 2010, section 2.2.1, in its order.
        ("HTTP://WWW.Example.Com/", "http://www.example.com/"),
        ("http://www.example.com", "http://www.example.com/"),
        ("http://www.example.com/%3a", "http://www.example.com/%3A"),
        ("http://www.site.it/page.htm#section", "http://www.site.it/page.htm"),
        ("http://www.example.com:80/", "http://www.example.com/"),
        ("http://www.site.com/./1/.././2/3", "http://www.site.com/2/3"),
        ("http://www.example.com/display?", "http://www.example.com/display"),
        # RFC 3986, section 6.2.2, and what servers and links add.
        ("http://a.test/%7Esmith/%41%2d%2E%5f?%7e=%c3%a4", "http://a.test/~smith/A-._?~=%C3%A4"),
        ("http://a.test/a%2fb%25%3F", "http://a.test/a%2Fb%25%3F"),
        ("http://a.test./x", "http://a.test/x"),
        ("http://a.test.:8080/x./y", "http://a.test:8080/x./y"),
        ("http://a.test/x;jsessionid=0AFE?q", "http://a.test/x?q"),
        ("http://a.test/x;JSESSIONID=0AFE.worker1/y;v=1", "http://a.test/x/y;v=1"),
        ("http://a.test/(S(lit3py55t21z5v55vlm25s55))/orders.aspx", "http://a.test/orders.aspx"),
        ("http://a.test/..;jsessionid=1/x", "http://a.test/x"),
        ("http://a.test/?PHPSESSID=1&a=b&aspSessionIdABCDEFGH=x", "http://a.test/?a=b"),
        ("http://a.test/?sid=4f2a9c01b7", "http://a.test/"),
        ("http://a.test/?session_id=Zk3mP0qL9vXw2rT8yB1n&a", "http://a.test/?a"),
        ("http://a.test/?sessionid=123E4567-e89b-12d3-a456-426614174000", "http://a.test/"),
        ("http://a.test/?utm_source=x&UTM_Medium=y&id=1&gclid=z&fbclid", "http://a.test/?id=1"),
        ("http://a.test/?utm%5Fsource=x", "http://a.test/"),
        ("http://a.test/?a=1&&b&", "http://a.test/?a=1&b"),
    ],
)
def test_the_usual_steps_fold_spellings_of_one_page(spelling: str, expected: str) -> None:
    assert folded(spelling) == expected


@pytest.mark.parametrize(
    "url",
    [
        "http://a.test/?b=2&a=1",
        "http://a.test/index.html",
        "http://a.test//x",
        "http://www.a.test/",
        "http://a.test/?sid=20240115",
        "http://a.test/?sid=products",
        "http://a.test/?s=windows11",
        "http://a.test/?session=summer2024",
        "http://a.test/?session=introduction-to-python-3",
        "http://a.test/?utm",
        "http://a.test/a;v=1/b,c",
        "http://a.test/x?next=/y;jsessionid=1",
        "http://a.test/(x)/y",
        "mailto:a%7eb@c?utm_source=x",
    ],
)
def test_what_may_be_another_page_stays_apart(url: str) -> None:
    assert folded(url) == url


@pytest.mark.parametrize(
    ("step", "before", "after"),
    [
        ("escapes", "http://a.test/%7e", "http://a.test/~"),
        ("trailing-dot", "http://a.test./", "http://a.test/"),
        ("sessions", "http://a.test/x;jsessionid=1?phpsessid=2&a", "http://a.test/x?a"),
        ("tracking", "http://a.test/?utm_id=1", "http://a.test/"),
        ("unused", "http://a.test/?name=x&This=pointless", "http://a.test/?name=x"),
        ("defaults", "http://a.test/?sort=asc&q=asc", "http://a.test/?q=asc"),
        ("empty-query", "http://a.test/?", "http://a.test/"),
        ("sort-query", "http://a.test/?b=2&a=2&b=1", "http://a.test/?a=2&b=2&b=1"),
        ("index-pages", "http://a.test/x/Index.HTML?q", "http://a.test/x/?q"),
        ("slashes", "http://a.test//x///y", "http://a.test/x/y"),
        ("www", "http://www.a.test/", "http://a.test/"),
    ],
)
def test_every_step_is_a_choice(step: Step, before: str, after: str) -> None:
    parameters = (*shipped_parameters(), *read_parameters(["unused this", "default sort=asc", "default sort="]))
    assert Normaliser((step,), parameters)(before) == after
    assert Normaliser(set(STEPS) - {step}, parameters)(before) != after
    assert NONE(before) == before


def test_ten_thousand_spellings_of_a_page_are_one() -> None:
    dice = random.Random(37)
    orders = Normaliser((*USUAL, "sort-query"), shipped_parameters())
    spellings = {_spelling(dice) for _ in range(12_000)}
    assert len(spellings) >= 10_000
    assert {orders(canonical(one)) for one in spellings} == {"http://www.example.com/~smith/list.html?color=red&page=2"}
    assert len({folded(one) for one in spellings}) == 2, "without `sort-query` only the order of two parameters is left"


def _spelling(dice: random.Random) -> str:
    """One of the ways in which pages write the same link (fault 37)."""

    def cased(text: str) -> str:
        return "".join(dice.choice((letter.lower(), letter.upper())) for letter in text)

    def escaped(text: str) -> str:
        return "".join(
            dice.choice((letter, letter, letter, f"%{ord(letter):02X}", f"%{ord(letter):02x}")) for letter in text
        )

    parameters = ["color=red", "page=2"]
    dice.shuffle(parameters)
    for extra in dice.sample(("utm_source=x", "gclid=a1", "PHPSESSID=9f", "", "fbclid=q"), dice.randrange(4)):
        parameters.insert(dice.randrange(len(parameters) + 1), extra)
    host = cased("www.example.com") + dice.choice(("", ".", ":80"))
    path = dice.choice(("/", "/./", "/x/../")) + escaped("~smith") + "/" + escaped("list.html")
    session = dice.choice(("", f";jsessionid={dice.randrange(10**6):X}"))
    return f"{cased('http')}://{host}{path}{session}?{'&'.join(parameters)}{dice.choice(('', '#top'))}"


def test_a_default_is_one_value_of_a_parameter_and_the_others_stay() -> None:
    normalise = Normaliser(USUAL, read_parameters(["default page=1", "default page="]))
    found = [
        normalise(f"http://a.test/?{query}") for query in ("page=1", "page=2", "Page=1&x", "page", "page=1&page=2")
    ]
    assert found == [f"http://a.test/{rest}" for rest in ("", "?page=2", "?x", "", "?page=2")]


def test_a_list_of_parameters_says_what_is_wrong_with_it() -> None:
    assert [one.name for one in read_parameters(["# x", "", "tracking Foo* # why"])] == ["foo*"]
    wrong = ("tracking", "traking foo", "tracking a*b", "tracking *", "tracking a b", "default a", "default a*=1")
    for line in (*wrong, "default =1"):
        with pytest.raises(ValueError, match=r"line 2: .*write a kind \(tracking, .*unused, default\) and a name, or"):
            read_parameters(["tracking ok", line])
