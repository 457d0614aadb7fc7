"""The base of protocol modules that libcurl serves, its driver on the running event loop, and the valve that all bodies pass
under a bandwidth.

Place in the flow: a protocol module adds a prepared handle and waits for its end; libcurl says here which sockets and instants
it waits for, and is told when they have come. Now and then the live transfers are asked whether they have outlived a deadline.

The sockets stand in an epoll set of their own, which the event loop watches as one. libcurl forgets a connection while it is
idle and names it again for the next request; here it stays in the set meanwhile, and the kernel takes it out when it is closed.
In the loop's own table each request would put its socket in and take it out again, which costs a fifth of a small answer.
Where there is no epoll (macOS), pycurl's own driver does that.
"""

import asyncio
import resource
import select
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Generic, TypeVar

import pycurl

from gossamer.engine.unit import Bucket, Provider
from gossamer.fetcher.fetch_stage import TransferSheet
from gossamer.fetcher.transfer import Receiving

P = TypeVar("P", bound=TransferSheet)
T = TypeVar("T", bound=Receiving[Any])

#: Seconds between two looks at the deadlines, at most: they are meant in seconds, and no request pays for a timer.
_TICK = 1.0


class _Overdue(Exception):
    """A deadline has passed; the transfer's verdict says which."""


def _end(future: "asyncio.Future[Any]", _: "asyncio.Task[Any]") -> None:
    """The task that carries a transfer has ended: so has the wait for it, unless it was given up before."""
    if not future.done():
        future.set_result(None)


class CurlModule(Provider[P], Generic[P, T]):
    """Has libcurl carry transfers, and gives up those that have outlived a deadline, by the unit's clock."""

    _multi: "Driver | None" = None
    _watch: "asyncio.Task[None] | None" = None

    def __init__(self, sheet: P | None = None) -> None:
        self._live: dict[T, asyncio.Future[pycurl.Curl]] = {}
        super().__init__(sheet)
        self.metrics.gauge("in_flight", lambda: len(self._live))

    def driver(self) -> "Driver":
        """The driver of the transfers of this module; made when it is first asked for."""
        if self._multi is None:
            self._multi = driver()
            self._watch = asyncio.get_running_loop().create_task(self._watch_clock(), name=f"{self.name} deadlines")
        return self._multi

    async def stop(self) -> None:
        """End what is under way and close every connection."""
        if self._watch is not None:
            self._watch.cancel()
            with suppress(asyncio.CancelledError):
                await self._watch
        if self._multi is not None:
            await self._multi.close()

    async def ended(self, transfer: T, carrying: Coroutine[Any, Any, tuple[int, str]] | None = None) -> tuple[int, str]:
        """Carry a transfer, and wait for its end: libcurl's error and what it says of it, 0 for none. The caller discards
        the handle. `carrying`: carries it instead of libcurl, and says the same."""
        driver, task = self._multi or self.driver(), None
        if carrying is None:
            future = driver.add(transfer.curl)
        else:
            future = asyncio.get_running_loop().create_future()
            task = asyncio.ensure_future(carrying)
            task.add_done_callback(partial(_end, future))
        self._live[transfer] = future
        try:
            await future
            if task is not None:
                return task.result()
        except pycurl.error as error:
            code, message = error.args
            return code, message
        except _Overdue:
            pass
        finally:
            del self._live[transfer]
            if task is not None:
                task.cancel()
                await asyncio.wait({task})
        return 0, ""

    async def _watch_clock(self) -> None:
        while True:
            await self.clock.sleep(min(_TICK, self.sheet.shortest / 4))
            now = self.clock.monotonic()
            for transfer, future in list(self._live.items()):
                if not future.done() and (verdict := transfer.overdue(self.sheet, now)):
                    transfer.verdict = verdict
                    # The coroutine that waits for it takes the handle out, and libcurl closes the connection.
                    future.set_exception(_Overdue())


class Valve(Generic[T]):
    """Lets so many bytes a second through, in the order in which they come: a transfer asks before it takes a piece of a body.

    Politeness lets no more requests begin than the bandwidth bears, but the size of their answers is not known before.
    """

    def __init__(self, rate: float, now: Callable[[], float], go_on: Callable[[T], None]) -> None:
        """An open valve.

        Args:
            rate: bytes a second.
            now: monotonic seconds.
            go_on: is called with a transfer that was held, when its piece may be taken.
        """
        self.rate = rate
        self.now = now
        self._whole = rate
        self._go_on = go_on
        self._bucket = Bucket(rate)

    @property
    def taken(self) -> float:
        """Bytes that were let through so far, or will be when their turn comes."""
        return self._bucket.taken

    def lend(self, share: float) -> None:
        """Let so many times the rate through that it was made with."""
        self.rate = self._whole * share
        self._bucket.lend(self.rate, self.now())

    def take(self, amount: int) -> float:
        """Take so many bytes; returns the seconds until they are let through, 0 where they are at once."""
        now = self.now()
        wait = self._bucket.ready_at() - now
        self._bucket.take(amount, now)
        return max(0.0, wait)

    def hold(self, transfer: T, wait: float) -> None:
        """Let this transfer go on after so many seconds."""
        asyncio.get_running_loop().call_later(wait, self._go_on, transfer)


#: libcurl's two bits for what it waits for, and what else it can say of a socket.
_WANTED = pycurl.POLL_IN | pycurl.POLL_OUT

#: Turns of the loop that a transfer which has ended waits at most for others that are about to: the stages, and above all the
#: commit, then have them in one batch. No turn waits for anything.
_TURNS = 4

#: Open files that are left to ledger, logs, archive and event loop, before connections get half of the rest; and the
#: connections that are tried for even under a limit that leaves none.
_OTHER_FILES = 64
_FEWEST_CONNECTIONS = 8


class LoopDriver:
    """The driver of pycurl, for systems without epoll. It has the part of libcurl's multi interface that protocol modules need."""

    def __init__(self) -> None:
        self._multi = pycurl.AsyncCurlMulti()

    @property
    def closed(self) -> bool:
        closed: bool = self._multi.closed
        return closed

    def setopt(self, option: int, value: object) -> None:
        self._multi.setopt(option, value)

    def add(self, curl: pycurl.Curl) -> "asyncio.Future[pycurl.Curl]":
        """Begin a transfer. The future ends with it: by `pycurl.error` (code, message) where it failed."""
        future: asyncio.Future[pycurl.Curl] = self._multi.add_handle(curl)
        return future

    async def close(self) -> None:
        """End what is under way, and close every connection. Closing twice is harmless."""
        await self._multi.aclose()

    def discard(self, curl: pycurl.Curl) -> None:
        """End a transfer whose answer is not wanted any more; one that has ended is out already."""
        with suppress(RuntimeError):
            self._multi.remove_handle(curl)


class EpollDriver:
    """The same by one epoll set, which the event loop watches."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)
        self._sockets = select.epoll()
        self._events = {0: 0, pycurl.POLL_IN: select.EPOLLIN, pycurl.POLL_OUT: select.EPOLLOUT}
        self._events[_WANTED] = select.EPOLLIN | select.EPOLLOUT
        """The events that libcurl waits for, in the words of epoll."""
        self._wanted: dict[int, int] = {}
        """By socket what libcurl waits for, as its bits; 0 for one that is idle or closed."""
        self._futures: dict[pycurl.Curl, asyncio.Future[pycurl.Curl]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._is_soon = False
        """libcurl will be told in this turn of the loop that its time has come."""
        self._turns = 0
        """Of the loop, at most, until those are told whose transfers have ended; 0 while none may have."""
        self._is_stirred = False
        """The last turn of the loop brought something."""
        self.closed = False
        self._loop.add_reader(self._sockets.fileno(), self._on_ready)

    def setopt(self, option: int, value: object) -> None:
        self._multi.setopt(option, value)

    def add(self, curl: pycurl.Curl) -> "asyncio.Future[pycurl.Curl]":
        future = self._futures[curl] = self._loop.create_future()
        try:
            self._multi.add_handle(curl)
        except BaseException:
            del self._futures[curl]
            raise
        return future

    def discard(self, curl: pycurl.Curl) -> None:
        if self._futures.pop(curl, None) is not None and not self.closed:
            try:
                self._multi.remove_handle(curl)
            except pycurl.error:
                pass  # libcurl has let go of it

    async def close(self) -> None:
        if self.closed:
            return
        for curl, future in list(self._futures.items()):
            self.discard(curl)
            future.cancel()
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._loop.remove_reader(self._sockets.fileno())
        self._sockets.close()
        self._multi.close()

    # -- what libcurl says

    def _on_socket(self, what: int, fd: int, multi: object, data: object) -> None:
        if self.closed:
            return
        if what == pycurl.POLL_REMOVE or what == pycurl.POLL_NONE:
            self._wanted[fd] = 0
            return
        wanted = self._wanted[fd] = what & _WANTED
        events = self._events[wanted]
        try:
            self._sockets.modify(fd, events)
        except FileNotFoundError:
            self._sockets.register(fd, events)

    def _on_timer(self, milliseconds: int) -> None:
        if self.closed:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if milliseconds > 0:
            self._timer = self._loop.call_later(milliseconds / 1000, self._on_time)
        elif milliseconds == 0 and not self._is_soon:
            # Later in this turn: libcurl must not be called from its own callback, and other transfers may begin meanwhile.
            self._is_soon = True
            self._loop.call_soon(self._on_time)

    # -- what the loop says

    def _on_time(self) -> None:
        self._is_soon = False
        if not self.closed:
            self._act(pycurl.SOCKET_TIMEOUT, 0)
            self._end_soon()

    def _on_ready(self) -> None:
        for fd, events in self._sockets.poll(0):
            wanted = self._wanted.get(fd, 0)
            if wanted:
                failed = events & (select.EPOLLERR | select.EPOLLHUP)
                ready = (events & select.EPOLLIN and pycurl.CSELECT_IN) | (
                    events & select.EPOLLOUT and pycurl.CSELECT_OUT
                )
                self._act(fd, wanted if failed else ready & wanted)
            else:
                # An idle connection that its server has closed, or talks on unasked: libcurl will see when it wants it again.
                self._leave(fd)
        self._end_soon()

    def _leave(self, fd: int) -> None:
        try:
            self._sockets.unregister(fd)
        except OSError:
            # Closed here, and still held by a process that was forked meanwhile: it leaves with the whole set alone.
            self._loop.remove_reader(self._sockets.fileno())
            self._sockets.close()
            self._sockets = select.epoll()
            self._loop.add_reader(self._sockets.fileno(), self._on_ready)
            for other, wanted in self._wanted.items():
                if wanted:
                    self._sockets.register(other, self._events[wanted])

    def _act(self, fd: int, ready: int) -> None:
        try:
            self._multi.socket_action(fd, ready)
        except pycurl.error as error:
            # libcurl cannot go on with any of them.
            for curl in list(self._futures):
                self._settle(curl, error)

    def _end_soon(self) -> None:
        self._is_stirred = True
        if not self._turns:
            self._turns = _TURNS
            self._loop.call_soon(self._end)

    def _end(self) -> None:
        """Tell those whose transfers have ended, once a turn has brought nothing more."""
        if self.closed:
            return
        self._turns -= 1
        if self._is_stirred and self._turns:
            self._is_stirred = False
            self._loop.call_soon(self._end)
            return
        self._turns = 0
        _, well, badly = self._multi.info_read()
        for curl in well:
            self._settle(curl, None)
        for curl, code, message in badly:
            self._settle(curl, pycurl.error(code, message))

    def _settle(self, curl: pycurl.Curl, error: pycurl.error | None) -> None:
        future = self._futures.get(curl)
        self.discard(curl)
        if future is None or future.done():
            return
        if error is None:
            future.set_result(curl)
        else:
            future.set_exception(error)


Driver = EpollDriver | LoopDriver


def driver() -> Driver:
    """The best that this system has, on the loop that runs."""
    return EpollDriver() if hasattr(select, "epoll") else LoopDriver()


def version() -> str:
    """Libcurl's version and those of the libraries that it was built with, in its own words."""
    return str(pycurl.version)


def affordable(connections: int) -> int:
    """So many connections, or as many as the limit of open files leaves: a request that gets none would seem a dead host."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return connections
    return min(connections, max(_FEWEST_CONNECTIONS, (limit - _OTHER_FILES) // 2))
