"""Ready-made reports of a crawl: those that the tables answer, and what was set aside as likely traps, which the ledger knows.

Place in the flow: `gossamer report` asks here. Works while the crawl runs and after.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gossamer.crawls.trap_review import suspicions_of
from gossamer.engine.sheet import nearest
from gossamer.query.database import Database
from gossamer.query.reports import SPECS, BarPlot, MadeReport, MadeSection, ReportSpec, make_report
from gossamer.storage.tables.manifest import Damage
from gossamer.values.errors import UsageError

TRAPS = ReportSpec(
    "traps", "families of URLs that were set aside as likely traps, and hosts with unusually many", (), (), True
)

#: Every report, by name, in the order in which they are told.
REPORTS = {**SPECS, TRAPS.name: TRAPS}

#: Reports whose first section lists troubles of the site.
TROUBLES = tuple(name for name, spec in REPORTS.items() if spec.is_trouble)

#: Every report at once.
ALL = "all"


class Reporter:
    """Makes the reports of one crawl, all of one look at its tables."""

    def __init__(self, directory: Path, database: Database) -> None:
        self._directory = directory
        self._database = database
        self.damaged: list[Damage] = database.damaged
        """Files whose rows are in no report."""

    def make(self, name: str, most: int | None, sections: int | None = None) -> MadeReport:
        """One report.

        Args:
            name: of :data:`REPORTS`.
            most: rows of a section at most; None for all.
            sections: how many of its first sections are wanted; None for all.
        """
        if name == TRAPS.name:
            return _traps(self._directory, most)
        return make_report(self._database, SPECS[name], most, sections)


@contextmanager
def reporting(directory: Path) -> Iterator[Reporter]:
    """Look at a crawl."""
    with Database(directory) as database:
        yield Reporter(directory, database)


def report_names(names: Sequence[str]) -> list[str]:
    """The reports that are meant, each once.

    Raises:
        UsageError: there is none of that name.
    """
    for name in names:
        if name not in REPORTS and name != ALL:
            raise UsageError(f"there is no report {name!r}{nearest(name, [*REPORTS, ALL])}")
    return list(REPORTS) if ALL in names else list(dict.fromkeys(names))


def _traps(directory: Path, most: int | None) -> MadeReport:
    found = suspicions_of(directory)
    families = [
        (one.id, one.family, one.trap, one.state, one.set_aside, one.probes, one.evidence) for one in found.families
    ]
    hosts = [(one.host, one.urls, one.pages) for one in found.hosts]
    columns = ["id", "family", "trap", "state", "set_aside", "probes", "evidence"]
    return MadeReport(
        TRAPS.name,
        TRAPS.doc,
        [
            MadeSection("Likely traps", columns, families[:most], len(families), plot=BarPlot("family", "set_aside")),
            MadeSection("Hosts with unusually many URLs", ["host", "urls", "pages"], hosts[:most], len(hosts)),
        ],
    )
