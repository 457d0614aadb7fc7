"""Figures of crawls for Prometheus, as its text format 0.0.4 has them. Pure.

Place in the flow: :mod:`app` serves it at `/metrics`. Labels are the crawl's key, an outcome or the name of a data set: closed
lists of ours, so that no web site adds a time series, or writes into one.
"""

from collections.abc import Iterable, Iterator, Mapping

from gossamer.assembly.control.standing import CrawlStanding
from gossamer.model.outcome import Outcome

#: Field of a standing -> type, and the text of its help.
FIGURES: dict[str, tuple[str, str]] = {
    "pages": ("counter", "Successful HTML documents."),
    "fetched": ("counter", "Answered requests, without those for robots.txt."),
    "unique_documents": ("counter", "Documents that differ from each other."),
    "bytes": ("counter", "Bytes that were received."),
    "errors": ("counter", "Requests that failed, and names without an address."),
    "raised": ("counter", "Visits on which processors or handlers raised."),
    "discovered": ("gauge", "URLs that were found."),
    "queued": ("gauge", "URLs that wait."),
    "set_aside": ("gauge", "URLs that look like parts of traps."),
    "in_flight": ("gauge", "Requests in flight."),
    "hosts": ("gauge", "Hosts that were asked."),
    "seconds": ("gauge", "Seconds of the present run, or of the last one."),
    "recent_pages_per_second": ("gauge", "Speed over the last ten seconds."),
    "cpu_seconds": ("gauge", "Seconds of CPU that the run has used."),
    "peak_rss_bytes": ("gauge", "Most bytes of memory that the run has held."),
    "disk_free": ("gauge", "Free bytes on the disk of the crawl directory."),
}


def exposition(crawls: Mapping[str, CrawlStanding]) -> str:
    """The figures of crawls, by their keys."""
    return "".join(f"{line}\n" for line in _lines(crawls))


def _lines(crawls: Mapping[str, CrawlStanding]) -> Iterator[str]:
    for name, (kind, text) in FIGURES.items():
        full = f"gossamer_{name}" + ("_total" if kind == "counter" else "")
        samples = ((f'crawl="{key}"', getattr(now, name)) for key, now in crawls.items())
        yield from _family(full, kind, text, samples)
    running = ((f'crawl="{key}"', int(now.is_at_work)) for key, now in crawls.items())
    yield from _family("gossamer_running", "gauge", "Whether a process is at work on the crawl.", running)
    problems = ((f'crawl="{key}"', len(now.problems)) for key, now in crawls.items())
    yield from _family("gossamer_problems", "gauge", "Problems that the crawl has.", problems)
    outcomes = (
        (f'crawl="{key}",outcome="{outcome}"', now.outcomes.get(outcome, 0))
        for key, now in crawls.items()
        for outcome in Outcome
    )
    yield from _family("gossamer_requests_total", "counter", "Requests by what became of them.", outcomes)
    sizes = ((f'crawl="{key}",store="{one.name}"', one.bytes) for key, now in crawls.items() for one in now.sizes)
    yield from _family("gossamer_store_bytes", "gauge", "Bytes of the main data sets.", sizes)


def _family(name: str, kind: str, text: str, samples: Iterable[tuple[str, float]]) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
    for labels, value in samples:
        yield f"{name}{{{labels}}} {value}"
