"""The driver of all transfers of a protocol module on the running event loop, the deadlines that each of them has, and the valve
that all bodies pass under a bandwidth.

Place in the flow: a protocol module adds a prepared handle and waits for its future; libcurl says here which sockets and instants
it waits for, and is told when they have come. Now and then the module looks at its live transfers and asks :func:`overdue`.

The sockets stand in an epoll set of their own, which the event loop watches as one. libcurl forgets a connection while it is
idle and names it again for the next request; here it stays in the set meanwhile, and the kernel takes it out when it is closed.
In the loop's own table each request would put its socket in and take it out again, which costs a fifth of a small answer.
Where there is no epoll (macOS), pycurl's own driver does that.
"""

import asyncio
import resource
import select
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, Protocol, TypeVar

import msgspec
import pycurl

from gossamer.engine.clock import Bucket
from gossamer.fetcher.transfer import Cut, Transfer
from gossamer.values.outcome import Outcome

T = TypeVar("T")


class Deadlines(msgspec.Struct, frozen=True):
    """The deadlines of one request, all in seconds."""

    connect: float
    tls: float
    head: float
    whole: float
    least_speed: float
    """Bytes per second, over `window`."""
    window: float


def overdue(transfer: Transfer, limits: Deadlines, now: float) -> Cut | None:
    """The verdict on a transfer that has outlived a deadline; each phase has its own, and its own outcome.

    Time that the bandwidth of the crawl has kept it waiting does not count.
    """
    now -= transfer.held(now)
    waited = now - transfer.began
    has_head = transfer.head is not None or (bool(transfer.lines) and transfer.judge_head())
    if transfer.verdict is not None:
        return transfer.verdict
    if waited > limits.whole:
        return Cut(
            Outcome.TIMED_OUT, f"the answer was not complete within {limits.whole:g} s", "time" if has_head else ""
        )
    if has_head:
        return _slow(transfer, limits, now)
    if waited <= min(limits.connect, limits.head):
        return None
    if transfer.is_sent:
        if waited - transfer.curl.getinfo(pycurl.PRETRANSFER_TIME) > limits.head:
            return Cut(Outcome.TIMED_OUT, f"the head of the answer was not complete within {limits.head:g} s")
    elif not transfer.is_connected:
        if waited > limits.connect:
            return Cut(Outcome.CONNECT_FAILED, f"the server took no connection within {limits.connect:g} s")
    elif waited > limits.connect + limits.tls:
        return Cut(Outcome.TLS_FAILED, f"the server agreed on no TLS session within {limits.tls:g} s")
    return None


def _slow(transfer: Transfer, limits: Deadlines, now: float) -> Cut | None:
    """Compare with the mark of a window ago; the first one is set when the body is first seen."""
    if transfer.mark is None:
        transfer.mark = (now, transfer.size)
        return None
    since, size = transfer.mark
    if now - since < limits.window:
        return None
    if transfer.size - size < limits.least_speed * (now - since):
        return Cut(Outcome.TOO_SLOW, f"the body came at less than {limits.least_speed:g} bytes/s", "time")
    transfer.mark = (now, transfer.size)
    return None


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


class Driver(Protocol):
    """The part of libcurl's multi interface that protocol modules need, all of it on the loop that was running when it was made."""

    @property
    def closed(self) -> bool:
        """Nothing can be added any more."""
        ...

    def setopt(self, option: int, value: object) -> None:
        """Set an option of the pool of connections."""
        ...

    def add(self, curl: pycurl.Curl) -> "asyncio.Future[pycurl.Curl]":
        """Begin a transfer. The future ends with it: by `pycurl.error` (code, message) where it failed."""
        ...

    def discard(self, curl: pycurl.Curl) -> None:
        """End a transfer whose answer is not wanted any more; one that has ended is out already."""
        ...

    async def close(self) -> None:
        """End what is under way, and close every connection. Closing twice is harmless."""
        ...


def driver() -> Driver:
    """The best that this system has."""
    return EpollDriver() if hasattr(select, "epoll") else LoopDriver()


class LoopDriver:
    """The driver of pycurl, for systems without epoll."""

    def __init__(self) -> None:
        self._multi = pycurl.AsyncCurlMulti()

    @property
    def closed(self) -> bool:
        closed: bool = self._multi.closed
        return closed

    def setopt(self, option: int, value: object) -> None:
        self._multi.setopt(option, value)

    def add(self, curl: pycurl.Curl) -> "asyncio.Future[pycurl.Curl]":
        future: asyncio.Future[pycurl.Curl] = self._multi.add_handle(curl)
        return future

    async def close(self) -> None:
        await self._multi.aclose()

    def discard(self, curl: pycurl.Curl) -> None:
        with suppress(RuntimeError):
            self._multi.remove_handle(curl)


class EpollDriver:
    """One epoll set, which the event loop watches."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)
        self._sockets = select.epoll()
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
        events = _events(wanted)
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
            self._loop.call_soon(self._on_soon)

    # -- what the loop says

    def _on_soon(self) -> None:
        self._is_soon = False
        self._on_time()

    def _on_time(self) -> None:
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
                    self._sockets.register(other, _events(wanted))

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


def _events(wanted: int) -> int:
    """The events that libcurl waits for, in the words of epoll."""
    return (select.EPOLLIN if wanted & pycurl.POLL_IN else 0) | (select.EPOLLOUT if wanted & pycurl.POLL_OUT else 0)


def version() -> str:
    """Libcurl's version and those of the libraries that it was built with, in its own words."""
    return str(pycurl.version)


def affordable(connections: int) -> int:
    """So many connections, or as many as the limit of open files leaves: a request that gets none would seem a dead host."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return connections
    return min(connections, max(_FEWEST_CONNECTIONS, (limit - _OTHER_FILES) // 2))
