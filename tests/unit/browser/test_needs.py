"""Which pages a browser gets: shells, and what rendering has taught of their hosts."""

import pytest

from gossamer.browser.needs import AUDITED, VAIN, Needs, seems_to_need
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.visit import Response, Visit

SHELL = "<!doctype html><title>t</title><script src=/app.js></script><body><div id=root></div>"
LINKS = "".join(f"<a href=/{number}>page {number}</a> " for number in range(8))
WORDS = " ".join(f"word{number}" for number in range(300))
MENU = "<script src=/menu.js></script>"


def visit(body: str, url: str = "http://h.test/a") -> Visit:
    headers = (("content-type", "text/html"),)
    return Visit(Task(url, "h.test"), Response(Outcome.OK, 200, headers=headers, body=body.encode()), mime="text/html")


@pytest.mark.parametrize(
    ("body", "needs"),
    [
        (SHELL, True),
        (SHELL.replace("<div id=root></div>", f"<div id=root>{LINKS}</div>"), False),
        (f"<script src=/a.js></script><body><p>{WORDS}", False),
        ("<p>a few words and no script", False),
        (f"<body><div id=app></div><script>const page = '{LINKS}'</script>", True),
        ("<meta http-equiv=refresh content='0; url=/x'><script></script>", False),
        ("", False),
        (f'{MENU}<div id="main-nav"></div><p>{WORDS}</p>{LINKS}', True),
        (f'{MENU}<nav id=sidebar class="left">\n</nav><p>{WORDS}</p>{LINKS}', True),
        (f'{MENU}<div id="main-nav">{LINKS}</div><p>{WORDS}</p>', False),
        (f'{MENU}<div id="menu-button"></div><div class="navigation"></div><p>{WORDS}</p>{LINKS}', False),
        (f"<script>const menu = '<div id=\"toc\"></div>'</script><p>{WORDS}</p>{LINKS}", False),
        (f'<div id="main-nav"></div><p>{WORDS}</p>{LINKS}', False),
        (f'<p>{WORDS}</p>{LINKS}<script defer src="../sidebar-items1.63.0.js"></script>', True),
        (f"<script src=toc.js></script><p>{WORDS}</p>{LINKS}", True),
        (f"<script src=/js/tocify.js></script><script src='sidebar-toggle.js'></script><p>{WORDS}</p>{LINKS}", False),
    ],
    ids=[
        *(
            "shell",
            "links",
            "words",
            "no script",
            "links in a script",
            "leads on",
            "empty",
            "menu",
            "sidebar",
            "full menu",
        ),
        *(
            "button",
            "menu in a script",
            "menu without a script",
            "script of a sidebar",
            "script of a menu",
            "other scripts",
        ),
    ],
)
def test_a_page_needs_a_browser_if_it_has_scripts_and_hardly_anything_to_read(body: str, needs: bool) -> None:
    assert seems_to_need(visit(body)) is needs


def test_shapes_that_gain_nothing_are_rendered_once_in_a_while() -> None:
    needs = Needs()
    for number in range(VAIN):
        one = visit(SHELL, f"http://h.test/item/{number}")
        assert needs.decide(one)
        needs.learn(one, SHELL.encode())
    later = [needs.decide(visit(SHELL, f"http://h.test/item/{number}")) for number in range(100, 100 + 2 * AUDITED)]
    assert later.count(True) == 2
    assert needs.decide(visit(SHELL, "http://h.test/other/1"))


def test_one_gain_brings_a_shape_back() -> None:
    needs = Needs()
    for _ in range(VAIN):
        needs.learn(visit(SHELL, "http://h.test/item/1"), SHELL.encode())
    needs.learn(visit(SHELL, "http://h.test/item/2"), f"<p>{WORDS}".encode())
    assert needs.decide(visit(SHELL, "http://h.test/item/3"))


def test_pages_with_text_are_audited_only_where_some_page_needed_a_browser() -> None:
    needs, document = Needs(), f"<script src=/list.js></script><p>{WORDS}</p>{LINKS}"
    assert not any(needs.decide(visit(document)) for _ in range(3 * AUDITED))
    needs.learn(visit(SHELL), f"<p>{WORDS}".encode())
    assert [needs.decide(visit(document)) for _ in range(3 * AUDITED)].count(True) == 3


def test_what_is_remembered_of_hosts_and_shapes_is_bounded() -> None:
    needs = Needs(most_hosts=10)
    for number in range(100):
        one = visit(SHELL)
        one = Visit(Task(f"http://h{number}.test/", f"h{number}.test"), one.response, mime=one.mime)
        needs.learn(one, SHELL.encode())
    assert len(needs) == 10


def test_a_menu_that_other_pages_have_brought_is_no_gain() -> None:
    needs, page = Needs(), f'{MENU}<div id="main-nav"></div><p>{WORDS}</p>{LINKS}'
    shown = page.replace("></div>", "><a href=/menu/1>1</a><a href=/menu/2>2</a><a href=/menu/3>3</a></div>")
    rendered = 0
    for number in range(100):
        one = visit(page, f"http://h.test/class/{number}")
        if needs.decide(one):
            needs.learn(one, shown.encode())
            rendered += 1
    assert rendered == 1 + VAIN + (100 - 1 - VAIN) // AUDITED


def test_words_of_scripts_are_no_gain() -> None:
    needs = Needs()
    for _ in range(VAIN):
        needs.learn(visit(SHELL), f"<p></p><script>{WORDS} <a href=/a><a href=/b><a href=/c></script>".encode())
    assert not needs.decide(visit(SHELL))
    needs.learn(visit(SHELL), f"<div><template shadowrootmode=open><p>{WORDS}</template></div>".encode())
    assert needs.decide(visit(SHELL))
