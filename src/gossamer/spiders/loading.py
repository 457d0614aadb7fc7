"""Loading a spider out of the file that it is written in, without running what stands at the file's end to run it.

Place in the flow: `gossamer run` and the processes of handlers load a file here. A file that ends with `spider.run(...)` is one
that people start with Python; the call ends the loading, and what it was given is what the spider is to be run with.
"""

import contextlib
import sys
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, runtime_checkable

from gossamer.flow.errors import FlowError
from gossamer.model.errors import UsageError
from gossamer.model.raised import raised
from gossamer.spiders.handlers import HandlerTable
from gossamer.spiders.sessions import Sessions

#: The name of the module that a file becomes: not `__main__`, so that what stands under that name's guard is not run.
MODULE = "gossamer_spider"


@runtime_checkable
class Loadable(Protocol):
    """A spider, as far as loading is concerned."""

    handlers: HandlerTable
    sessions: Sessions


class SpiderLoaded(BaseException):
    """A file that is being loaded has come to `spider.run(...)`. No `except Exception` of the file's is to catch it."""

    def __init__(self, spider: object, options: Mapping[str, Any]) -> None:
        super().__init__("the file is being loaded")
        self.spider = spider
        self.options = options


_is_loading: ContextVar[bool] = ContextVar("_is_loading", default=False)


def end_loading(spider: object, options: Mapping[str, Any]) -> None:
    """Called where a spider is to be run: ends the loading of a file, if one is being loaded.

    Raises:
        SpiderLoaded: one is.
    """
    if _is_loading.get():
        raise SpiderLoaded(spider, options)


def parted(text: str) -> tuple[str, str]:
    """File and name of the spider in it, of `FILE[:NAME]`; an empty name where none is given."""
    if ":" not in text or text.endswith(".py"):
        return text, ""
    file, _, name = text.rpartition(":")
    return file, name


def load(file: str, name: str = "") -> tuple[Any, Mapping[str, Any]]:
    """The spider of a file, and the options that the file would run it with.

    Args:
        file: a Python file.
        name: of the variable that holds the spider, where the file has several.

    Raises:
        UsageError: there is no such file, it cannot be loaded, or it is not clear which spider is meant.
    """
    path = Path(file)
    try:
        source = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from None
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
    sys.path.append(folder)  # behind all that is installed: a file called random.py takes nobody's place
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
        raise UsageError(f"{error.filename or file}:{error.lineno}: {error.msg}") from None
    except (UsageError, FlowError) as error:
        place, text = raised("", error).place, str(error)
        raise UsageError(text if not place or place.rpartition(":")[0] in text else f"{place}: {text}") from None
    except Exception as error:
        told = raised("", error)
        raise UsageError(f"{told.place or file}: {told.error}") from None
    return None
