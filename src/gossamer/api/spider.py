"""A spider: seeds, options, and handlers that choose the items to keep and the links to follow.

::

    spider = gossamer.Spider("https://books.example/", concurrency=16)

    @spider.page()
    async def listing(page):
        yield page.follow_all(".product a", label="book")
        yield page.follow("a.next")

    @spider.page("book")
    async def book(page):
        yield {"title": page.text("h1"), "price": page.number(".price"), "url": page.url}

    spider.run(items="books.csv")

It stands where :mod:`crawls` stands: it makes the same crawl, with its handlers in it.
"""

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from gossamer.agents.crawl import SupervisedCrawl
from gossamer.api.crawls import LOG, CrawlRun, LoopOfOwn, Made, Yields, make_crawl, workspace
from gossamer.api.keywords import CrawlKeywords
from gossamer.api.processors import Handler, LogIn, Method, Seeds
from gossamer.crawls.machine import collecting_seldom
from gossamer.crawls.options import all_options
from gossamer.crawls.plan import read_seeds
from gossamer.crawls.summary import Summary
from gossamer.documents.page import unknown_label
from gossamer.engine.sheet import build, nearest, properties, renamed
from gossamer.spiders.handlers import HandlerTable, Place, place_of_function
from gossamer.spiders.loading import end_loading
from gossamer.spiders.logins import LogInTable, TokenGrant
from gossamer.spiders.running import SpiderHandlers
from gossamer.spiders.sessions import Sessions, sessions_of
from gossamer.spiders.threads import place_in
from gossamer.values.errors import UsageError
from gossamer.values.request import Request
from gossamer.values.url import host_of

if TYPE_CHECKING:
    from gossamer.analysis.reprocess import Reprocessed

H = TypeVar("H", bound=Handler)
M = TypeVar("M", bound=Method)
L = TypeVar("L", bound=LogIn)

#: Seconds that a handler may take for a page.
DEADLINE = 60.0

#: Options that a program may give in a form that no command line has.
_NO_TEXT = frozenset(("wiring", "item_columns"))

#: Where :func:`page` and :func:`failed` put what they are to register.
_MARK = "__gossamer_handles__"


class Spider:
    """A crawl whose pages go to handlers. Handlers decide which links of their pages are followed."""

    def __init__(
        self,
        seeds: Seeds = (),
        *,
        wiring: str = "",
        deadline: float = DEADLINE,
        sessions: int | Sessions = 0,
        **options: Unpack[CrawlKeywords],
    ) -> None:
        """Describe a crawl. It fetches nothing before :meth:`run` or :meth:`crawl`.

        Args:
            seeds: one URL or several; a :class:`~gossamer.values.request.Request` for more than a plain page.
            wiring: a file with a wiring, or the name of a shipped one.
            deadline: seconds that a handler may take for a page, unless it says otherwise.
            sessions: use this many sessions in turn, each with its own cookies, log-ins and proxy; :class:`Sessions` says more.
            options: of the crawl, as :func:`gossamer.crawl` takes them.

        Raises:
            SettingError: there is no such option.
            UsageError: a method that is marked as a handler is not one, or the sessions are not valid.
        """
        self._place = place_in(sys._getframe(1))
        self.seeds = _several(seeds)
        self.options: dict[str, Any] = _checked({**options, **({"wiring": wiring} if wiring else {})})
        self.handlers = HandlerTable(deadline)
        self.logins = LogInTable()
        self.sessions = sessions_of(sessions)
        self.summary: Summary | None = None
        for name in dir(type(self)):
            for kind, settings in getattr(inspect.getattr_static(type(self), name), _MARK, ()):
                add = self.handlers.add_page if kind == "page" else self.handlers.add_failed
                add(getattr(self, name), **settings)

    def __repr__(self) -> str:
        return f"<Spider of {', '.join(map(_url, self.seeds)) or 'no seed'}: {self.handlers!r}>"

    # -- handlers

    def page(
        self,
        label: str | None = None,
        *,
        url: str = "",
        mime: str | None = None,
        run: Place | None = None,
        deadline: float | None = None,
        render: bool = False,
    ) -> Callable[[H], H]:
        """Register a handler of documents.

        Without a label, the handler gets HTML pages that were requested without one; with a label, every answer to
        requests with this label. If several handlers fit, the most specific one gets the page.

        Args:
            label: of the request.
            url: an RE2 pattern that the URL contains.
            mime: a media type, such as `application/pdf`, `image/*` or `*`.
            run: `loop` for async functions, `thread` for others, since they may block, `process` for long computations.
            deadline: seconds that it may take for a page.
            render: have a browser render the pages before the handler gets them (docs/rendering.md); the crawl then
                has `render="asked"`, unless you choose another value.

        Raises:
            UsageError: the function is not a handler, or the same pages have another one. It names the file and line of each.
        """

        if callable(label):
            raise UsageError(f"{place_of_function(label)}: write @spider.page() with its brackets")

        def register(function: H) -> H:
            self.handlers.add_page(function, label, url, mime, run, deadline, render)
            return function

        return register

    @overload
    def failed(self, label: H, /) -> H: ...

    @overload
    def failed(
        self, label: str | None = None, /, *, run: Place | None = None, deadline: float | None = None
    ) -> Callable[[H], H]: ...

    def failed(
        self, label: H | str | None = None, /, *, run: Place | None = None, deadline: float | None = None
    ) -> H | Callable[[H], H]:
        """Register a handler of requests that got no document; `page.outcome` and `page.error` hold the reason.

        A request that is tried again comes here after its last try. It raises the same errors as :meth:`page`.
        """
        if label is not None and not isinstance(label, str):
            self.handlers.add_failed(label, None, run, deadline)
            return label

        def register(function: H) -> H:
            self.handlers.add_failed(function, label, run, deadline)
            return function

        return register

    def login(self, url: str, *, deadline: float = DEADLINE) -> Callable[[L], L]:
        """Register the log-in of a host: an async function that gets a :class:`Session` and runs before any page of
        that host.

        Its cookies are kept in the crawl's directory, readable only by its owner, so that a resumed crawl is still
        logged in (`cookies="keep"`, unless you choose another value). A handler raises :class:`gossamer.LoggedOut` if
        the session is no longer logged in.

        Args:
            url: of the page with the form, on the host of the log-in.
            deadline: seconds that it may take.

        Raises:
            UsageError: the function is not a log-in, or the host has another one. It names the file and line of each.
        """

        if callable(url):
            raise UsageError(
                f"{place_of_function(url)}: write @spider.login(URL) with the URL of the page with the form"
            )

        def register(function: L) -> L:
            self.logins.add(function, url, deadline)
            return function

        return register

    def oauth2(
        self,
        url: str,
        *,
        token_url: str,
        client: str,
        secret: str = "",
        scope: str = "",
        refresh_token: str = "",
        deadline: float = DEADLINE,
    ) -> None:
        """Send an OAuth 2.0 bearer token with every request to a site, and get a new one before it expires.

        Ledger, archive and `crawl.toml` hold neither secret nor token. Raise `gossamer.LoggedOut` to get a new token.

        Args:
            url: of any page of the site.
            token_url: the https endpoint that issues tokens.
            client: the name under which the client is registered.
            secret: the place of the client's secret: `$NAME` in the environment, or `@FILE`, which only its owner can read.
            scope: the scope to ask for, where the server wants one.
            refresh_token: the place of a refresh token, written like `secret`; without one, the client credentials are sent.
            deadline: seconds that the answer may take.

        Raises:
            UsageError: the site has another log-in, or a secret would go out readable.
            SettingError: a secret is missing.
        """
        grant = TokenGrant(token_url, client, secret, scope, refresh_token)
        place = place_in(sys._getframe(1))
        self.logins.add(grant.enter, url, deadline, place=place, issuer=host_of(grant.url))

    # -- running

    def run(self, seeds: Seeds = (), *, wiring: str = "", **options: Unpack[CrawlKeywords]) -> Summary:
        """Crawl to the end, and return the summary. Blocks; works in a notebook too. Without `output`, only the items
        are kept.

        Options given here override those of the spider. `gossamer run FILE` replaces this call.

        Raises:
            GossamerError: the crawl cannot run; the message gives the reason.
        """
        given = _checked({**options, **({"wiring": wiring} if wiring else {})})
        if seeds:
            given["seeds"] = _several(seeds)
        end_loading(self, given)
        chosen = given.pop("seeds", self.seeds)
        with closing(LoopOfOwn()) as loop, workspace(self._made(chosen, given)) as made, collecting_seldom():
            self.summary = loop.run(make_crawl(made).run())
        return self.summary

    def crawl(self, *, yields: Yields = "pages", **options: Unpack[CrawlKeywords]) -> CrawlRun:
        """Crawl, and iterate over the pages with their items, as :func:`gossamer.crawl` does."""
        return CrawlRun(self._made(self.seeds, _checked({**options})), yields)

    def reprocess(self, directory: str, *, render: bool = False) -> "Reprocessed":
        """Run the handlers over the stored archive of a crawl, without a request, and replace the rows of its tables.
        Blocks.

        Pages keep their labels and data. Requests of handlers become links in the tables, and nothing is fetched. With
        `render`, a browser shows pages again, with nothing but the answers of the archive.

        Raises:
            UsageError: there is no crawl in the directory.
        """
        from gossamer.analysis.reprocess import reprocess  # few programs run a spider again

        end_loading(self, {})
        with closing(LoopOfOwn()) as loop, collecting_seldom():
            return loop.run(reprocess(directory, spider=self.at_work(), render=render).run())

    @property
    def chosen(self) -> dict[str, Any]:
        """Return the options, with those that follow from them: a spider with log-ins or sessions keeps cookies, and one with
        handlers of rendered pages renders those."""
        follow: dict[str, Any] = {"cookies": "keep"} if len(self.logins) or self.sessions.count else {}
        if any(one.render for one in self.handlers.all()):
            follow["render"] = "asked"
        return {**follow, **self.options}

    def job(self, seeds: Iterable[str | Request], options: Mapping[str, Any], **more: Any) -> SupervisedCrawl:
        """A crawl of this spider that another program runs; `more`: further arguments of
        :class:`~gossamer.agents.crawl.SupervisedCrawl`."""
        return make_crawl(self._made(seeds, options), **more)

    def _made(self, seeds: Iterable[str | Request], options: Mapping[str, Any]) -> Made:
        begun = tuple(seeds)
        for seed in begun:
            if isinstance(seed, Request) and seed.label and seed.label not in self.handlers.labels:
                told = unknown_label(seed.label, self.handlers.labels)
                raise UsageError(f"{self._place}: seed {seed.url}: {told}" if self._place else told)
        if not self.handlers.all():
            LOG.warning("the spider has no handlers: it crawls as gossamer crawl does")
        chosen = {**self.chosen, **options}
        urls = () if chosen.get("resume") else tuple(map(_url, begun))
        files = (code.co_filename for code in self.handlers.codes())
        own = next((file for file in files if Path(file).is_file()), "")  # empty in a notebook
        return Made(urls, chosen, self.at_work(), own, begun)

    def at_work(self) -> type[SpiderHandlers]:
        """Return the object that runs the handlers in a crawl."""
        own = {
            "table": self.handlers,
            "logins": self.logins,
            "plan_of_sessions": self.sessions,
            "__doc__": SpiderHandlers.__doc__,
        }
        return type("ThisSpider", (SpiderHandlers,), own)


def _several(seeds: Seeds) -> tuple[str | Request, ...]:
    """Seeds as they were given. Raises UsageError: one is neither a URL nor a request."""
    given: Any = seeds
    if isinstance(given, str | Request) or not isinstance(given, Iterable):
        given = (given,)
    several = tuple(given)
    for seed in several:
        if not isinstance(seed, str | Request):
            raise UsageError(f"a seed is a URL or a gossamer.Request, not {seed!r:.80}")
        read_seeds([_url(seed)], _Every())
    return several


class _Every:
    """Schemes: which of them are served, the wiring knows."""

    def __contains__(self, scheme: object) -> bool:
        return True


def _url(seed: str | Request) -> str:
    return seed if isinstance(seed, str) else seed.url


def _checked(options: dict[str, Any]) -> dict[str, Any]:
    """The options, if there are such. Raises SettingError: there is none of a name, and the nearest is named; or it takes no
    such value."""
    form = all_options()
    options = renamed(options, properties(form))
    known = {prop.name for prop in properties(form)} | {"wiring"}
    for name in options:
        if name not in known:
            raise UsageError(f"unknown option {name!r}{nearest(name, known)}")
    build(form, {name: value for name, value in options.items() if name not in _NO_TEXT})
    return options


def page(
    label: str | None = None,
    *,
    url: str = "",
    mime: str | None = None,
    run: Place | None = None,
    deadline: float | None = None,
    render: bool = False,
) -> Callable[[M], M]:
    """Mark a method of a subclass of :class:`Spider` as a handler of documents. See :meth:`Spider.page`."""
    return _marked(
        "page", {"label": label, "url": url, "mime": mime, "run": run, "deadline": deadline, "render": render}
    )


def failed(label: str | None = None, *, run: Place | None = None, deadline: float | None = None) -> Callable[[M], M]:
    """Mark a method of a subclass of :class:`Spider` as a handler of failures. See :meth:`Spider.failed`."""
    return _marked("failed", {"label": label, "run": run, "deadline": deadline})


def _marked(kind: str, settings: dict[str, Any]) -> Callable[[M], M]:
    def mark(method: M) -> M:
        setattr(method, _MARK, (*getattr(method, _MARK, ()), (kind, settings)))
        return method

    return mark
