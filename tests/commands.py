"""Commands as a journey gives them, in its own process: that has loaded what a process of theirs would load first, which is most of
what a small crawl costs. Tests of the process itself (signals, terminals, limits) start one."""

import io
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from gossamer.cli.main import main


def gave(
    *arguments: str, given: str = "", cwd: Path | None = None, environment: Mapping[str, str] | None = None
) -> tuple[int, str, str]:
    """Run a command to its end: exit status, standard output, standard error. Bytes that are no UTF-8, as pages in other encodings
    have them, are replaced."""
    out, said = (io.TextIOWrapper(io.BytesIO(), "utf-8", "replace", write_through=True) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(said):
        patch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given.encode()), encoding="utf-8"))
        if cwd is not None:
            patch.chdir(cwd)
        for name, value in (environment or {}).items():
            patch.setenv(name, value)
        status = main(arguments)
    for stream in (out, said):
        stream.seek(0)
    return status, out.read(), said.read()
