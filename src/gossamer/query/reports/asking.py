"""Makes reports of a crawl's tables.

Place in the flow: :mod:`gossamer.operations.reporting` asks here for every report whose rows are in tables.
"""

from gossamer.query.database import Database
from gossamer.query.reports.content import DUPLICATES, LANGUAGES, STRUCTURED_DATA
from gossamer.query.reports.graph import BROKEN, LINKS, REDIRECTS
from gossamer.query.reports.health import ERRORS, HOSTS, SLOW
from gossamer.query.reports.values import MadeReport, MadeSection, ReportSection, ReportSpec

#: The reports that are SQL, by name.
SPECS = {
    spec.name: spec for spec in (LINKS, BROKEN, HOSTS, ERRORS, DUPLICATES, LANGUAGES, REDIRECTS, STRUCTURED_DATA, SLOW)
}


def make_report(database: Database, spec: ReportSpec, most: int | None, sections: int | None = None) -> MadeReport:
    """Ask everything that a report wants to know.

    Args:
        database: a look at the crawl.
        spec: the report.
        most: rows of a section at most; None for all.
        sections: how many of its first sections are made; None for all.
    """
    for name, sql in spec.parts:
        database.keep(name, sql)
    return MadeReport(spec.name, spec.doc, [_made(database, section, most) for section in spec.sections[:sections]])


def _made(database: Database, section: ReportSection, most: int | None) -> MadeSection:
    limit = "" if most is None else f" LIMIT {most + 1}"
    answer = database.ask(f"SELECT * FROM ({section.sql}){limit}")
    columns, types, rows = answer.columns, answer.types, list(answer)
    total = len(rows)
    if most is not None and total > most:
        [(total,)] = database.ask(f"SELECT count(*) FROM ({section.sql})")
        rows = rows[:most]
    return MadeSection(section.title, columns, rows, total, types, section.plot)
