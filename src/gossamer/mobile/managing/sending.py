"""Where a crawler is worth its bytes: an estimate of what it costs to send one, and to fetch instead. Pure.

Place in the flow: the manager asks once for the URLs that wait, and fetches where that is estimated to be cheaper. Fiedler and
Hammer (2000, section 5) measure the two: a crawler pays for its program whatever it finds, a stationary crawl for every page.
"""

from typing import Final

#: Bytes of a page as a server sends it with gzip, and of request and heads around it, where nothing is known: medians of the
#: documentation sites that `gossamer bench mobile` crawls.
USUAL_PAGE: Final = 6_000
EXCHANGE: Final = 700

#: Bytes of a journey beside the program and what is brought: heads of the messages, the summary.
JOURNEY: Final = 4_000

#: A whole page that is brought home takes about this share of what gzip takes: frames of 8 MB know more than one page.
OF_GZIP: Final = 0.5


def is_worth_sending(program: int, pages: int | None, page: int = USUAL_PAGE) -> bool:
    """Whether a crawler is estimated to cost fewer bytes than fetching, though every page should be relevant.

    Args:
        program: bytes of the crawler as it is sent.
        pages: how many pages there can be at most; None where nobody knows, and there may be many.
        page: bytes of a page as a server sends it, packed.
    """
    if pages is None:
        return True
    return program + JOURNEY + pages * page * OF_GZIP < pages * (page + EXCHANGE)
