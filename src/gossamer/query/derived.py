"""Which derived stores a crawl has, by the names of its files: no library of such a store is loaded to say so.

Place in the flow: commands, the processes that answer, and the dashboard ask here before they open the index or the triples.
"""

from pathlib import Path

from gossamer.model.errors import UsageError
from gossamer.query.places import INDEX_DIRECTORY, TRIPLES, has_rows

#: The file beside those of tantivy that notes the format of an index.
INDEX_FORMAT_FILE = "gossamer.json"


def index_path(directory: Path) -> Path:
    """Where the index of a crawl lies."""
    return directory / INDEX_DIRECTORY


def has_index(directory: Path) -> bool:
    """Whether a crawl has an index, of whatever version."""
    return (index_path(directory) / INDEX_FORMAT_FILE).exists()


def check_index(directory: Path) -> None:
    """Refuse a crawl that keeps no index.

    Raises:
        UsageError: it does not.
    """
    if not has_index(directory):
        raise UsageError(f"{directory} has no index; make one with: gossamer index {directory}")


def check_triples(directory: Path) -> None:
    """Refuse a crawl that keeps no triples.

    Raises:
        UsageError: it does not.
    """
    if not ((directory / TRIPLES).is_dir() or has_rows(directory, "triples")):
        raise UsageError(
            f"{directory} keeps no triples; crawl with --rdf, or make them of what it archived: "
            f"gossamer reprocess {directory} --rdf"
        )
