"""The tutorials of Scrapy and of Crawlee for Python, done here on copies of their sites, with what docs/spiders.md says alone.

Scrapy's: quotes with their tags and the next page, authors' pages, a log-in, a crawl that is narrowed from the command line.
Crawlee's: the warehouse store with its categories, listings and products, and an export of what was found.
"""

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from gossamer.testing.fakeweb import FakePage, FakeRequest, FakeWeb

QUOTES = [
    ("The world as we have created it is a process of our thinking.", "Albert Einstein", ["change", "deep-thoughts"]),
    ("It is our choices that show what we truly are.", "J.K. Rowling", ["abilities", "choices"]),
    ("There are only two ways to live your life.", "Albert Einstein", ["inspirational", "life"]),
    ("A day without sunshine is like, you know, night.", "Steve Martin", ["humor", "obvious"]),
    ("A reader lives a thousand lives before he dies.", "George R.R. Martin", []),
]
BORN = {
    "Albert Einstein": "March 14, 1879",
    "J.K. Rowling": "July 31, 1965",
    "Steve Martin": "August 14, 1945",
    "George R.R. Martin": "September 20, 1948",
}


def slug(name: str) -> str:
    return name.replace(". ", "-").replace(".", "-").replace(" ", "-")


def quote(text: str, author: str, tags: list[str]) -> str:
    tagged = "".join(f'<a class="tag" href="/tag/{tag}/">{tag}</a>' for tag in tags)
    return (
        f'<div class="quote"><span class="text">\u201c{text}\u201d</span><span>by <small class="author">{author}</small>'
        f'<a href="/author/{slug(author)}">(about)</a></span><div class="tags">Tags: {tagged}</div></div>'
    )


def quotes_site() -> dict[str, Any]:
    """A site like quotes.toscrape.com, with two quotes on a page and a log-in."""
    pages: dict[str, Any] = {}
    for number in range(0, len(QUOTES), 2):
        more = number + 2 < len(QUOTES)
        after = f'<li class="next"><a href="/page/{number // 2 + 2}/">Next</a></li>' if more else ""
        pages[f"/page/{number // 2 + 1}/"] = "".join(quote(*one) for one in QUOTES[number : number + 2]) + after
    pages["/"] = pages["/page/1/"]
    for _, author, tags in QUOTES:
        for tag in tags:
            pages[f"/tag/{tag}/"] = "".join(quote(*one) for one in QUOTES if tag in one[2])
        pages[f"/author/{slug(author)}"] = (
            f'<h3 class="author-title">{author}</h3><span class="author-born-date">{BORN[author]}</span>'
            f'<div class="author-description">  About {author}.  </div>'
        )
    pages["/login"] = lambda request: (
        FakePage("", status=302, headers=(("Set-Cookie", "session=1; Path=/"), ("Location", "/members")))
        if parse_qs(request.body.decode()).get("csrf_token") == ["t0ken"]
        else FakePage(
            '<form action="/login" method="post"><input type="hidden" name="csrf_token" value="t0ken">'
            '<input name="username"><input name="password" type="password"></form>'
        )
    )
    pages["/members"] = members
    return pages


def members(request: FakeRequest) -> FakePage:
    if "session=1" not in request.header("cookie"):
        return FakePage('<a href="/login">Login</a>')
    return FakePage('<a href="/logout">Logout</a>' + quote(*QUOTES[0]))


def run(folder: Path, program: str, *arguments: str) -> None:
    """Run a program of a user's, as its documentation says."""
    file = folder / "spider.py"
    file.write_text(program)
    command = [sys.executable, "-m", "gossamer", "run", str(file), "-o", str(folder / "mine"), *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "error" not in done.stderr.lower(), done.stderr


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


QUOTES_SPIDER = """
import gossamer

spider = gossamer.Spider("SITE/page/1/", delay=0)

@spider.page()
def parse(page):
    for quote in page.each("div.quote"):
        yield {
            "text": quote.text("span.text"),
            "author": quote.text("small.author"),
            "tags": quote.texts("div.tags a.tag"),
        }
    yield page.follow("li.next a")
"""


def test_quotes_with_their_tags_and_the_next_page(tmp_path: Path) -> None:
    with FakeWeb(quotes_site()) as web:
        run(
            tmp_path, QUOTES_SPIDER.replace("SITE", web.url("/").rstrip("/")), "--items", str(tmp_path / "quotes.jsonl")
        )
        assert not [target for target in web.targets() if target.startswith(("/tag/", "/author/"))]
    found = lines(tmp_path / "quotes.jsonl")
    assert [(one["text"], one["author"], one["tags"]) for one in found] == [
        (f"\u201c{text}\u201d", author, tags) for text, author, tags in QUOTES
    ]


def test_the_same_spider_from_another_place_is_a_spider_with_an_argument(tmp_path: Path) -> None:
    with FakeWeb(quotes_site()) as web:
        program = QUOTES_SPIDER.replace("SITE", web.url("/").rstrip("/"))
        run(tmp_path, program, web.url("/tag/humor/"), "--items", str(tmp_path / "humor.json"))
    [one] = json.loads((tmp_path / "humor.json").read_text())
    assert one["author"] == "Steve Martin"


def test_authors_are_fetched_once_and_their_pages_taken_apart(tmp_path: Path) -> None:
    program = """
import gossamer

spider = gossamer.Spider("SITE/", delay=0)

@spider.page()
async def parse(page):
    yield page.follow_all(".author + a", label="author")
    yield page.follow_all("li.next a")

@spider.page("author")
async def parse_author(page):
    yield {
        "name": page.text("h3.author-title"),
        "birthdate": page.text(".author-born-date"),
        "bio": page.text(".author-description"),
    }
"""
    with FakeWeb(quotes_site()) as web:
        run(tmp_path, program.replace("SITE", web.url("/").rstrip("/")), "--items", str(tmp_path / "authors.csv"))
        asked = [target for target in web.targets() if target.startswith("/author/")]
        assert len(asked) == len(set(asked)) == len(BORN)
    with (tmp_path / "authors.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    assert {one["name"]: one["birthdate"] for one in found} == BORN
    assert all(one["bio"] == f"About {one['name']}." for one in found)


def test_a_log_in_by_the_form_of_the_site(tmp_path: Path) -> None:
    program = """
import gossamer

spider = gossamer.Spider("SITE/members", delay=0)

@spider.login("SITE/login")
async def log_in(session):
    page = await session.get()
    answer = await session.send(page.form().submit(username="me", password="secret"))
    return bool(answer.css("a[href='/logout']"))

@spider.page()
def parse(page):
    for quote in page.each("div.quote"):
        yield {"author": quote.text("small.author")}
"""
    with FakeWeb(quotes_site()) as web:
        run(tmp_path, program.replace("SITE", web.url("/").rstrip("/")), "--items", str(tmp_path / "quotes.jsonl"))
    assert [one["author"] for one in lines(tmp_path / "quotes.jsonl")] == ["Albert Einstein"]


# -- Crawlee's warehouse store

CATEGORIES = {"tv-s": 3, "headphones": 2}


def product(category: str, number: int) -> str:
    stock = "In stock" if number % 2 else "Sold out"
    return (
        f'<div class="product-meta"><h1>Sony {category} {number}</h1><span class="product-meta__sku-number">SKU-{category}-{number}'
        f'</span></div><span class="price"><span class="visually-hidden">Sale price</span>${number},398.00</span>'
        f'<span class="product-form__inventory">{stock}, 50 units</span>'
    )


def store() -> dict[str, Any]:
    """A shop like the one of Crawlee's tutorial: collections, their pages, one product on each."""
    blocks = "".join(f'<a class="collection-block-item" href="/collections/{name}">{name}</a>' for name in CATEGORIES)
    pages: dict[str, Any] = {"/collections": blocks + '<a href="/pages/contact">Contact</a>', "/pages/contact": "us"}
    for name, count in CATEGORIES.items():
        for number in range(1, count + 1):
            item = f'<div class="product-item"><a href="/products/sony-{name}-{number}">x</a></div>'
            after = f'<a class="pagination__next" href="/collections/{name}?page={number + 1}">Next</a>'
            address = f"/collections/{name}" + (f"?page={number}" if number > 1 else "")
            pages[address] = item + (after if number < count else "")
            pages[f"/products/sony-{name}-{number}"] = product(name, number)
    return pages


def test_a_store_is_crawled_from_categories_to_products_and_exported(tmp_path: Path) -> None:
    program = """
from dataclasses import dataclass

import gossamer

spider = gossamer.Spider("SITE/collections", delay=0, max_pages=100)

@dataclass
class Product:
    url: str
    manufacturer: str
    title: str
    sku: str
    price: float | None
    in_stock: bool

@spider.page()
async def collections(page):
    yield page.follow_all(".collection-block-item", label="category")

@spider.page("category")
async def category(page):
    yield page.follow_all(".product-item > a", label="detail")
    yield page.follow(".pagination__next", label="category")

@spider.page("detail")
async def detail(page):
    yield Product(
        url=page.url,
        manufacturer=page.url.rpartition("/")[2].split("-")[0],
        title=page.text(".product-meta h1"),
        sku=page.text("span.product-meta__sku-number"),
        price=page.number("span.price"),
        in_stock="In stock" in page.text("span.product-form__inventory"),
    )

@spider.failed
async def failed(page):
    yield {"failed": page.url, "why": page.outcome}
"""
    with FakeWeb(store()) as web:
        seed = web.url("/").rstrip("/")
        files = ["--items", f"Product={tmp_path / 'products.csv'}", "--items", str(tmp_path / "products.json")]
        run(tmp_path, program.replace("SITE", seed), *files)
        assert "/pages/contact" not in web.targets()
    found = json.loads((tmp_path / "products.json").read_text())
    wanted = [
        (
            f"{seed}/products/sony-{name}-{number}",
            f"Sony {name} {number}",
            f"SKU-{name}-{number}",
            number * 1000 + 398.0,
        )
        for name, count in CATEGORIES.items()
        for number in range(1, count + 1)
    ]
    assert sorted((one["url"], one["title"], one["sku"], one["price"]) for one in found) == sorted(wanted)
    assert all(one["manufacturer"] == "sony" and one["in_stock"] is (one["title"][-1] in "13") for one in found)
    with (tmp_path / "products.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == len(wanted)
