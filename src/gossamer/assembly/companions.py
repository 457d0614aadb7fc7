"""What is made of a crawl beside its run, by processes of their own: tables, the followers of its rows, and a mirror.

Place in the flow: a crawl, of one agent or of several, has one object of this. It checks these processes before it touches
anything, registers them when it makes its directory, starts them with its work, lets them have the rest when everything is
committed, and finishes them when its own files are closed.
"""

import contextlib
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from gossamer.assembly.crawl_plan import CrawlPlan
from gossamer.assembly.following import Following
from gossamer.assembly.mirrors import MirrorFolder
from gossamer.assembly.options import CrawlOptions
from gossamer.assembly.tables import TableMaker


class Companions:
    """The processes beside one crawl."""

    def __init__(
        self, plan: CrawlPlan, options: CrawlOptions, report: Callable[[str], None], *, has_tables: bool
    ) -> None:
        """Check them. Touches nothing.

        Args:
            plan: what the crawl will be.
            options: say what follows it, and where its mirror is.
            report: takes lines for people.
            has_tables: make tables; without, rows stay in their logs, and no mirror is written.

        Raises:
            UsageError: the options do not fit, or a file or folder that is to be written is somebody else's.
        """
        self._tables = TableMaker(plan.directory, report) if has_tables else None
        self._following = Following(plan.directory, options, report, triples=plan.keeps_triples)
        self._following.check(overwrite=options.overwrite)
        self._mirror = MirrorFolder(plan.directory, options, report)
        self._mirror.check()

    def __repr__(self) -> str:
        return f"<Companions {self._tables!r}, {self._following!r}, {self._mirror!r}>"

    @property
    def makes_tables(self) -> bool:
        """Whether rows become tables; without, :meth:`finish` does nothing."""
        return self._tables is not None

    def register(self) -> None:
        """Note them in the directory, for this run and every later one.

        Raises:
            UsageError: what the options name cannot be read or written.
            OSError: they cannot be noted.
        """
        self._following.register()
        self._mirror.register()

    async def start(self) -> None:
        """Feed the followers of the crawl from now on."""
        await self._following.start()

    def making_tables(self) -> AbstractAsyncContextManager[None]:
        """While the block runs, make tables of what is closed, now and then."""
        return self._tables.watching() if self._tables else contextlib.nullcontext()

    def abort(self) -> None:
        """Let go of the tables that are being made. Safe to call at any time."""
        if self._tables is not None:
            self._tables.abort()

    async def feed_rest(self) -> None:
        """Everything is committed: wait until its followers have it. Safe to call when nothing was started."""
        await self._following.finish()

    async def finish(self) -> str:
        """Make the last tables, and write the mirror; returns why tables could not be made, empty where they were."""
        if self._tables is None:
            return ""
        why = await self._tables.finish()
        await self._mirror.finish()
        return why
