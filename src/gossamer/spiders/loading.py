"""Loading a spider from its file, and running its handlers in a process of their own."""

import contextlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Protocol, runtime_checkable

from gossamer.documents.document import Document
from gossamer.documents.page import Page
from gossamer.engine.errors import FlowError, refusing
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.parsing.contract import TOO_MANY_FINDINGS
from gossamer.spiders.handlers import Gathering, HandlerPlan, HandlerTable, TooManyFinds
from gossamer.spiders.running import gather
from gossamer.spiders.sessions import Sessions
from gossamer.values.errors import UsageError
from gossamer.values.items import raised
from gossamer.values.visit import Record

# Loading a spider from its file, without running the call at the end of the file that starts the crawl. `gossamer run` and the
# processes of handlers load a file here. People can start a file that ends with `spider.run(...)` with Python. While it is
# loaded, this call ends the loading, and its options become those of the crawl.

#: The name of the module that a file becomes: not `__main__`, so that what stands under that name's guard is not run.
MODULE = "gossamer_spider"


@runtime_checkable
class Loadable(Protocol):
    """A spider, as far as loading is concerned."""

    handlers: HandlerTable
    sessions: Sessions


class SpiderLoaded(BaseException):
    """A file that is being loaded has reached `spider.run(...)`. No `except Exception` of the file can catch it."""

    def __init__(self, spider: object, options: Mapping[str, Any]) -> None:
        super().__init__("the file is being loaded")
        self.spider = spider
        self.options = options


_is_loading: ContextVar[bool] = ContextVar("_is_loading", default=False)


def end_loading(spider: object, options: Mapping[str, Any]) -> None:
    """End the loading of a file, if one is being loaded. Called when a spider is to be run.
    Raises SpiderLoaded: a file is being loaded."""
    if _is_loading.get():
        raise SpiderLoaded(spider, options)


def parted(text: str) -> tuple[str, str]:
    """Split `FILE[:NAME]` into the file and the name of the spider in it; the name is empty if it is not given."""
    if ":" not in text or text.endswith(".py"):
        return text, ""
    file, _, name = text.rpartition(":")
    return file, name


def load(file: str, name: str = "") -> tuple[Any, Mapping[str, Any]]:
    """Return the spider of a file, by the name of its variable where the file has several, and the options with which the file
    would run it. Raises UsageError: there is no such file, it cannot be loaded, or it is not clear which spider is meant."""
    path = Path(file)
    with refusing(UsageError, f"{file} cannot be read"):
        source = path.read_bytes()
    module = ModuleType(MODULE)
    module.__file__ = str(path.resolve())
    with _as_module(module, path):
        run = _executed(module, source, file)
    if run is not None and not name:
        return run.spider, run.options
    spiders = {
        key: value for key, value in vars(module).items() if isinstance(value, Loadable) and not isinstance(value, type)
    }
    if name:
        if name not in spiders:
            raise UsageError(f"{file} has no spider called {name!r}; it has: {', '.join(spiders) or 'none'}")
        return spiders[name], {}
    found = list({id(one): one for one in spiders.values()}.values())
    if not found:
        raise UsageError(f"{file} has no spider; make one with spider = gossamer.Spider(...) at the top of the file")
    if len(found) > 1:
        raise UsageError(f"{file} has several spiders: {', '.join(spiders)}; name one, as {file}:{next(iter(spiders))}")
    return found[0], {}


@contextlib.contextmanager
def _as_module(module: ModuleType, path: Path) -> Iterator[None]:
    """While a file is loaded and after, its classes find their module; modules beside it are found while it is loaded."""
    sys.modules[module.__name__] = module
    folder = str(path.resolve().parent)
    sys.path.append(folder)  # behind all that is installed: a file called random.py takes the place of no library
    token = _is_loading.set(True)
    try:
        yield
    finally:
        _is_loading.reset(token)
        with contextlib.suppress(ValueError):
            sys.path.remove(folder)


def _executed(module: ModuleType, source: bytes, file: str) -> SpiderLoaded | None:
    try:
        exec(compile(source, str(module.__file__), "exec"), vars(module))  # noqa: S102  # the user asks to run this file
    except SpiderLoaded as run:
        return run
    except SyntaxError as error:
        line = "" if error.lineno is None else f":{error.lineno}"
        raise UsageError(f"{error.filename or file}{line}: {error.msg}") from None
    except (UsageError, FlowError) as error:
        place, text = raised("", error).place, str(error)
        raise UsageError(text if not place or place.rpartition(":")[0] in text else f"{place}: {text}") from None
    except Exception as error:
        told = raised("", error)
        raise UsageError(f"{told.place or file}: {told.error}") from None
    return None


# A handler in a process of its own: `run="process"`. That process loads the spider's file, and asks its handler. A parser process
# (:mod:`gossamer.parsing.findings`) makes this processor by its name. It can be killed when the handler hangs, and computes on a
# core of its own.


class FileHandlerSheet(Sheet, frozen=True):
    """Settings of :class:`FileHandler`: the handler that it runs."""

    file: Annotated[str, setting("The file of the spider.", names="code")] = ""
    handler: Annotated[str, setting("The name of the handler.")] = ""
    labels: Annotated[tuple[str, ...], setting("The labels that the spider answers to.")] = ()
    keeps_sessions: Annotated[bool, setting("Take requests that name a session.")] = False


class FileHandler(Provider[FileHandlerSheet]):
    """Runs one handler of a spider's file. Contract: `parsing.contract.Processor`."""

    def __init__(self, sheet: FileHandlerSheet | None = None) -> None:
        super().__init__(sheet)
        self.name = f"handler {self.sheet.handler!r}"
        spider, _ = load(self.sheet.file)
        plan: HandlerPlan | None = spider.handlers.named(self.sheet.handler)
        if plan is None:
            raise UsageError(f"{self.sheet.file} has no handler {self.sheet.handler!r} when it is loaded again")
        self._plan = plan

    def process(self, document: Document) -> Iterable[Any]:
        labels = frozenset(self.sheet.labels)
        gathering = Gathering(document.url, labels, keeps_sessions=self.sheet.keeps_sessions)
        failure: Exception | None = None
        page = Page(Record(document.visit), document=document, labels=labels)
        try:
            gather(self._plan, page, gathering)
        except TooManyFinds:
            document.missed = document.missed or TOO_MANY_FINDINGS
        except Exception as error:
            failure = error
        handled = gathering.handled()
        yield from (*handled.found, *handled.items, *handled.orders)
        if page.session.is_retired:
            yield page.session
        if failure is not None:  # after what came before it, which is kept
            raise failure
