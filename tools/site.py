"""The documentation site: every page of the repository as HTML that needs no network, one folder for each version."""

from __future__ import annotations

import html
import os
import subprocess
import sys
from pathlib import Path

from gossamer import __version__
from tools.checkout import ROOT

_GO_ON = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={there}">
<title>Gossamer</title>
<p><a href="{there}">{text}</a></p>
{more}</html>
"""


def build(folder: Path) -> int:
    """Build this version's pages in FOLDER/VERSION, and the page in FOLDER that leads to it and to the other versions there.

    Returns:
        The exit code of Sphinx: 0 when it found nothing wrong. Warnings count as wrong, a link that leads nowhere among them.
    """
    ours = folder.resolve() / __version__
    line = [sys.executable, "-P", "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-j", "auto"]
    line += ["-c", str(ROOT / "docs"), "-d", str(folder.resolve() / ".built" / __version__), str(ROOT), str(ours)]
    done = subprocess.run(line, env={**os.environ, "GOSSAMER_DOCS_VERSION": __version__}, check=False)
    if done.returncode == 0:
        (ours / "index.html").write_text(_page("docs/index.html", "Documentation"), encoding="utf-8")
        (folder / "index.html").write_text(versions(folder), encoding="utf-8")
        print(f"wrote {folder / 'index.html'}")
    return done.returncode


def versions(folder: Path) -> str:
    """The page of a folder that leads to this version, and to the others that were built there."""
    others = sorted(path.parent.name for path in folder.glob("*/index.html") if path.parent.name != __version__)
    listed = "".join(f'<p><a href="{html.escape(name)}/index.html">{html.escape(name)}</a></p>\n' for name in others)
    return _page(f"{__version__}/docs/index.html", f"Gossamer {__version__}", listed)


def _page(there: str, text: str, more: str = "") -> str:
    return _GO_ON.format(there=html.escape(there), text=html.escape(text), more=more)
