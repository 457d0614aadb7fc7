"""The suite of page handlers: what runs a user's code for pages keeps its promises, whatever that code does."""

from collections.abc import Sequence

from gossamer.contracts.spiders import Handled, PageHandlers
from gossamer.model.visit import Visit
from gossamer.reading.document import Document


async def check_page_handlers(handlers: PageHandlers, wanted: Sequence[Visit], unwanted: Sequence[Visit]) -> None:
    """Handlers keep the promises of their contract.

    Args:
        handlers: started; some of them should raise, hang, and yield what cannot be kept.
        wanted: visits that they have handlers for.
        unwanted: visits that they have none for.
    """
    assert wanted, "give a visit that there is a handler for"
    for visit in wanted:
        assert handlers.wants(visit) and handlers.wants(visit), "it does not want a visit that it has a handler for"
    for visit in unwanted:
        assert not handlers.wants(visit), "it wants a visit that nobody is to see"
    for visit in wanted:
        if handlers.elsewhere(visit) is not None:
            continue
        try:
            made = await handlers.handle(Document(visit))
        except Exception as error:
            raise AssertionError(f"{type(error).__name__} of a handler came through") from error
        assert isinstance(made, Handled)
        assert all(error.who and error.error for error in made.errors), "an error says neither who nor what"
        assert made.again is None or made.again >= 0
        assert handlers.wants(visit), "it has forgotten a handler"
