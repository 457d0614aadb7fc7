"""A handler in a process of its own: `run="process"`. That process loads the spider's file, and asks its handler.

Place in the flow: a parser process (:mod:`gossamer.stages.process.parser`) makes this processor by its name. It can be killed when
the handler hangs, and computes on a core of its own.
"""

from collections.abc import Iterable
from typing import Annotated, Any

from gossamer.contracts.processing import TOO_MANY_FINDINGS
from gossamer.flow.sheet import Sheet, setting
from gossamer.flow.unit import Provider
from gossamer.model.errors import UsageError
from gossamer.model.visit import Record
from gossamer.reading.document import Document
from gossamer.reading.page import Page
from gossamer.spiders.gathering import Gathering, TooManyFinds
from gossamer.spiders.handlers import HandlerPlan
from gossamer.spiders.loading import load
from gossamer.spiders.running import gather


class FileHandlerSheet(Sheet, frozen=True):
    """Settings of :class:`FileHandler`: the handler that it runs."""

    file: Annotated[str, setting("The file of the spider.", names="code")] = ""
    handler: Annotated[str, setting("The name of the handler.")] = ""
    labels: Annotated[tuple[str, ...], setting("The labels that the spider answers to.")] = ()
    keeps_sessions: Annotated[bool, setting("Take requests that name a session.")] = False


class FileHandler(Provider[FileHandlerSheet]):
    """Runs one handler of a spider's file. Contract: `processing.Processor`."""

    def __init__(self, sheet: FileHandlerSheet | None = None) -> None:
        super().__init__(sheet)
        self.name = f"handler {self.sheet.handler!r}"
        self._plan = _plan(self.sheet)

    def process(self, document: Document) -> Iterable[Any]:
        """Return the results of the handler."""
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


def _plan(sheet: FileHandlerSheet) -> HandlerPlan:
    spider, _ = load(sheet.file)
    plan: HandlerPlan | None = spider.handlers.named(sheet.handler)
    if plan is None:
        raise UsageError(f"{sheet.file} has no handler {sheet.handler!r} when it is loaded again")
    return plan
