"""Files that are replaced as a whole: notes of a crawl, manifests, tables of stores.

Place in the flow: the bottom of every file that is small, read at a start, and must never be seen half written.
"""

import os
from pathlib import Path


def replace_file(path: Path, data: bytes | bytearray, *, sync: bool = False) -> None:
    """Put a file in the place of another, whole or not at all; whoever reads meanwhile sees one of the two.

    Args:
        path: of the file. Its folder is there.
        data: what it is to hold.
        sync: wait for the disk, so that it survives a power cut.

    Raises:
        OSError: it cannot be written; the one before stays.
    """
    beside = path.with_name(f"{path.name}.new")
    with beside.open("wb") as out:
        out.write(data)
        out.flush()
        if sync:
            os.fsync(out.fileno())
    beside.replace(path)
    if sync:
        descriptor = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
