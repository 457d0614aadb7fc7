"""Sites at random whose pages are known one by one, with every spelling of a link that people write."""

from collections.abc import Callable
from random import Random
from typing import Final

from tools.killing.programs import KnownSite, page_of

Spelling = Callable[[str, str], str]
"""From the path of a page and the path it links to, the markup of a link."""


def _upwards(source: str, target: str) -> str:
    return "../" * source.count("/") + target[1:]


SPELLINGS: Final[tuple[Spelling, ...]] = (
    lambda source, target: f'<a href="{target}">plain</a>',
    lambda source, target: f"<a href='{target}#part'>with a fragment</a>",
    lambda source, target: f"<A HREF={target}>without quotes</A>",
    lambda source, target: f'<a href="{_upwards(source, target)}">relative</a>',
    lambda source, target: f'<a href="/nowhere/..{target}">dots</a>',
    lambda source, target: f'<a href="/.{target}">a dot</a>',
    lambda source, target: f'<a href=" \n {target}\t">space around</a>',
    lambda source, target: f'<a href="{target[0]}&#{ord(target[1])};{target[2:]}">a character reference</a>',
    lambda source, target: f'<a rel=next target=_top href="{target}" href="/second-attribute">twice</a>',
    lambda source, target: f'<map name=m><area href="{target}" alt=""></map>',
    lambda source, target: f'<iframe src="{target}"></iframe>',
    lambda source, target: f'<p><b><a href="{target}">badly <i>nested</b></a></i>',
    lambda source, target: f'<a href="/%2e{target}">an encoded dot</a>',
)
"""Every way to write a link that leads to the same URL. A target is at least one letter long."""

_STEMS: Final = ("a", "news", "2024", "x-y_z", "%C3%A4", "under", "deep", "item")

_NO_LINKS: Final = (
    '<!-- <a href="/commented">no</a> -->',
    '<script>document.write("<a href=/scripted>no</a>")</script>',
    '<a name="/named">no</a>',
    '<a href="mailto:a@b.example">mail</a>',
    '<a href="javascript:void(0)">script</a>',
    "<textarea><a href=/typed>no</a></textarea>",
)
"""Text that looks like a link to a page and is none."""


def scattered(seed: int) -> KnownSite:
    """A site at random: 5 to 60 pages, some of them out of reach, with redirects, dead links, cycles and queries."""
    random = Random(seed)
    paths = _paths(random)
    links = {path: random.sample(paths, min(len(paths), random.randrange(5))) for path in paths}
    moved = random.sample(paths[1:], len(paths) // 8)
    redirects = {path: random.choice(paths) for path in moved}
    pages = {}
    for path in paths:
        if path in redirects:
            continue
        written = [random.choice(SPELLINGS)(path, target) for target in links[path] if target != "/"]
        if "/" in links[path]:
            written.append('<a href="/">home</a>')
        if random.random() < 0.2:
            written.append(f'<a href="/dead/{random.randrange(99)}">dead</a>')
        written += random.sample(_NO_LINKS, random.randrange(3))
        random.shuffle(written)
        pages[path] = page_of(path, written)
    return KnownSite(pages, redirects, _reachable(links, redirects))


def _paths(random: Random) -> list[str]:
    """Paths of all forms, `/` first, each once."""
    found = {"/": None}
    count = random.randrange(5, 60)
    while len(found) < count:
        parts = [random.choice(_STEMS) for _ in range(random.randrange(1, 5))]
        path = f"/{'/'.join(parts)}{random.choice(['', '', '.html', '/'])}"
        if random.random() < 0.2:
            path += f"?page={random.randrange(9)}"
        found[path] = None
    return list(found)


def _reachable(links: dict[str, list[str]], redirects: dict[str, str]) -> frozenset[str]:
    """The pages that links and redirects lead to from `/`; redirects themselves are no pages."""
    seen, todo = {"/"}, ["/"]
    while todo:
        path = todo.pop()
        for target in [redirects[path]] if path in redirects else links[path]:
            if target not in seen:
                seen.add(target)
                todo.append(target)
    return frozenset(seen - redirects.keys())
