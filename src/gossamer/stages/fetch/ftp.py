"""The protocol module for ftp: files are documents, directories are lists of links (row M1).

A URL that ends in `/` is a directory, and its listing is a document of the type `text/x-ftp-listing`, which a processor reads
(:mod:`gossamer.stages.process.listings`). A name that turns out to be a directory redirects to itself with the slash.
"""

import mimetypes
from typing import Annotated
from urllib.parse import unquote_to_bytes

import pycurl

from gossamer.flow.sheet import setting
from gossamer.model.outcome import Outcome
from gossamer.model.task import ROBOTS, Task
from gossamer.model.url import path_of
from gossamer.stages.fetch.plain import Ask, PlainModule, PlainSheet, by_code
from gossamer.stages.fetch.transfer import Cut

#: The type of a directory's listing: the server's own lines, in whatever form it has them.
LISTING = "text/x-ftp-listing"

#: The reply to a request for something that is no plain file (RFC 959, 4.2).
_NO_FILE = 550

#: Errors behind which a reply of the server stands, rather than the network.
_REPLIED = frozenset(
    {
        pycurl.E_REMOTE_ACCESS_DENIED,
        pycurl.E_REMOTE_FILE_NOT_FOUND,
        pycurl.E_FTP_COULDNT_RETR_FILE,
        pycurl.E_LOGIN_DENIED,
        pycurl.E_FTP_COULDNT_SET_TYPE,
        pycurl.E_FTP_WEIRD_PASS_REPLY,
        pycurl.E_FTP_WEIRD_SERVER_REPLY,
    }
)


class FtpSheet(PlainSheet, frozen=True):
    """Settings of :class:`FtpModule`."""

    address: Annotated[str, setting("Give this as the password of `anonymous`; by custom it is a mail address.")] = (
        "gossamer@"
    )


class FtpModule(PlainModule[FtpSheet]):
    """Fetches ftp URLs as `anonymous`, in passive mode, and takes data only from the host that it asked."""

    protocol = pycurl.PROTO_FTP
    scheme = "ftp"

    def ask(self, url: str) -> Ask | str:
        """A listing for a directory, otherwise a file."""
        path = path_of(url).partition("?")[0]
        if min(unquote_to_bytes(path), default=32) < 32:
            return "a control character in the path"
        options: list[tuple[int, object]] = [
            (pycurl.USERNAME, "anonymous"),
            (pycurl.PASSWORD, self.sheet.address),
            (pycurl.FTP_FILEMETHOD, pycurl.FTPMETHOD_SINGLECWD),
            # Data comes from the host that was asked, whatever address its reply names (fault 44).
            (pycurl.FTP_SKIP_PASV_IP, 1),
        ]
        mime = LISTING if path.endswith("/") else mimetypes.guess_type(path)[0] or "application/octet-stream"
        # `;type=a` would be an order to libcurl, where it is a part of the name.
        return Ask(path.replace(";", "%3B"), mime, tuple(options))

    def location(self, task: Task, status: int) -> str:
        """A name without a slash may be that of a directory: whether it is, asking for that tells. A robots.txt is none."""
        url = task.url
        if status != _NO_FILE or task.relation == ROBOTS or url.endswith("/") or "?" in url:
            return ""
        return f"{url}/"

    def verdict(self, url: str, status: int, code: int, message: str) -> Cut:
        """By the reply where there is one: 4yz may pass, 5yz will not (RFC 959, 4.2.1)."""
        if not code:
            return Cut(Outcome.OK, "")
        if code in _REPLIED and 400 <= status < 600:
            return Cut(Outcome.SERVER_ERROR if status < 500 else Outcome.CLIENT_ERROR, f"reply {status}")
        return by_code(code, 0, message, 0)
