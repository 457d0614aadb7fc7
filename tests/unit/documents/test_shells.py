"""Which pages seem to need a browser, and which do not."""

import time

import pytest

from gossamer.documents.document import Document
from gossamer.documents.terms import seems_empty
from gossamer.parsing.html import HtmlLinks
from gossamer.testing.storage import visit

SCRIPT = "<script type=module src=/app.js></script>"


def is_empty(page: str) -> bool:
    document = Document(visit("http://a.test/dir/page", page.encode()))
    return seems_empty(document.skim, list(HtmlLinks().process(document)))


@pytest.mark.parametrize(
    "page",
    [
        f"<!doctype html><title>App</title>{SCRIPT}<body><div id=root></div>",
        f"<body><div id='app'></div><!-- {'words of a comment ' * 50} -->{SCRIPT}",
        f"<style>{'.a { color: red } ' * 2000}</style><body><div id=q></div><script src=x></script>",
        f"<body><noscript>You need to enable JavaScript to run this app.</noscript><div id=x></div>{SCRIPT}",
        f"<body><header>{'Our shop of garden things ' * 10}</header><main id=app></main>{SCRIPT}",
        f"<body><p>{'A few words on this ' * 10}</p><my-shop></my-shop>{SCRIPT}",
        f"<body>{'<a href=#>Menu</a><a href=javascript:go()>Go</a>' * 4}{SCRIPT}",
        f"<body><p>{'This site is a shop ' * 20}</p><noscript>JavaScript must be enabled.</noscript>{SCRIPT}",
        f"<body><div id=root></div><svg>{'<path d=M0/>' * 20_000}</svg>{SCRIPT}<script>{'var words = 1; ' * 20_000}</script>",
        f"<body><p>A few words</p>{'  ' * 60_000}{SCRIPT}",
    ],
    ids=["vite", "comment", "styles", "noscript", "header", "element", "no links", "asks", "large", "blanks"],
)
def test_a_shell_of_scripts_seems_to_need_a_browser(page: str) -> None:
    assert is_empty(page)


@pytest.mark.parametrize(
    "page",
    [
        "<title>Short</title><body><p>Hello",
        f"<body><p>{'Prose that anyone can read, word for word. ' * 40}</p><div id=root></div>{SCRIPT}",
        f"<body>{''.join(f'<a href=/{n}>page</a>' for n in range(5))}<div id=root></div>{SCRIPT}",
        f"<meta http-equiv=refresh content='0; url=/there'><p>Redirecting{SCRIPT}",
        "<body><p>Hello</p><script type=application/ld+json>{}</script>",
        f"<body><p>{'猫が窓の外の庭を静かに見ていた。' * 30}</p>{SCRIPT}",
        f"<body><div id=main><p>{'One page of a manual with little text. ' * 8}</p></div>{SCRIPT}",
        f"<body>{SCRIPT}{'<div data-x=y></div>' * 10_000}<p>{'Prose that anyone can read, word for word. ' * 40}",
        f"<body><div id=root></div><p>{'Prose that anyone can read, word for word. '.replace(' ', ' ' * 99) * 40}</p>{SCRIPT}",
    ],
    ids=["no script", "prose", "links", "refresh", "data", "no blanks", "short manual", "late", "blanks"],
)
def test_a_page_that_can_be_read_does_not(page: str) -> None:
    assert not is_empty(page)


def test_pages_made_to_cost_much_are_told_in_linear_time() -> None:
    for unit in ("<div id=", "<a-b", "<a-b ", "<noscript>enable ", "<noscript", "javascript " * 2, "<main \t id \t= "):
        small, large = (f"<body>{SCRIPT}{unit * (size // len(unit))}" for size in (20_000, 320_000))
        costs = []
        for page in (small, large):
            document = Document(visit("http://a.test/", page.encode()))
            found, skim = list(HtmlLinks().process(document)), document.skim
            began = time.process_time()
            seems_empty(skim, found)
            costs.append(time.process_time() - began)
        assert costs[1] < 80 * max(costs[0], 0.005), f"{unit!r} costs more than in proportion"
