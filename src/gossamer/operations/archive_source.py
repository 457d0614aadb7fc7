"""A stored crawl as a source of pages: a mobile crawler visits what was archived, without a request.

Place in the flow: `gossamer runtime run` hands it to :mod:`gossamer.mobile.running`. A crawler meets the site as it was
crawled: redirects and errors too, as far as they were archived.
"""

from pathlib import Path

from gossamer.model.errors import CrawlDirectoryError, UsageError
from gossamer.model.outcome import Outcome, of_status
from gossamer.model.task import Task
from gossamer.model.visit import Response
from gossamer.query.archive import ArchiveReader
from gossamer.reading.coding import undone
from gossamer.stores.warc import WARC_DIRECTORY

#: What a URL is answered with that is not in the archive: the crawl may have had no reason to fetch it.
_MISSING = 404


class ArchiveSource:
    """Answers for URLs out of the archive of one crawl: the version that stands last. Contract: `mobile.running.Fetch`.

    Raises:
        UsageError: the crawl has no archive.
    """

    def __init__(self, directory: Path) -> None:
        if not (directory / WARC_DIRECTORY).is_dir():
            raise UsageError(f"{directory} has no archive; name the directory of a crawl that ran without --no-warc")
        self._reader = ArchiveReader(directory)

    def __call__(self, task: Task) -> Response:
        """The answer for `task.url`; 404 for what is not archived, `protocol_failed` where the archive is damaged."""
        try:
            document = self._reader.document(task.url)
        except UsageError as error:
            return Response(Outcome.CLIENT_ERROR, _MISSING, error=str(error))
        except CrawlDirectoryError as error:
            return Response(Outcome.PROTOCOL_FAILED, error=str(error))
        record, source = document.record, document.source
        cut = source.fields.get("warc-truncated", "")
        # A `resource` record has no status: it is a document that came by another protocol.
        status = source.status if source.is_http else 200
        outcome = of_status(status)
        found = undone(source.headers, source.body, whole=not cut)
        return Response(
            Outcome.TRUNCATED if cut and outcome is Outcome.OK else outcome,
            status,
            response_head=record.head,
            headers=source.headers,
            body=source.body,
            decoded=found.data if found.is_readable and found.data is not source.body else None,
            cut=cut,
        )
