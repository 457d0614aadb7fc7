"""How Sphinx builds the documentation site; `./gossamer dev docs --site FOLDER` calls it.

The pages are the Markdown files of the repository as they are, so that each reads well in a checkout too. Links between them are
relative paths; the hook below only turns a link to a folder into a link to the page that lists it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parent.parent

project = "Gossamer"
project_copyright = "the Gossamer developers, Apache-2.0"
release = os.environ.get("GOSSAMER_DOCS_VERSION", "")
version = release

extensions = ["myst_parser"]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/*.md", "docs/**/*.md", "examples/*.md", "examples/**/*.md", "changes/README.md"]
exclude_patterns = [".venv", "build", "dist"]
# GitHub's rule for the anchors of headings, which the pages' links follow.
myst_heading_anchors = 4
myst_enable_extensions = ["strikethrough"]
# Each page begins where its subject does: the changelog's versions, for one, are second-level headings without an order.
suppress_warnings = ["myst.header", "misc.highlighting_failure"]

html_theme = "furo"
html_title = f"Gossamer {release}".strip()
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False

#: Pages that list the others of their folder; the navigation shows those below them.
_LISTS = ("docs/reference/README", "docs/design/README", "examples/README")

#: Pages that their list alone leads to: a hundred entries more in the navigation of each page would help no reader, and cost a
#: third of the time to build the site.
_LISTED = "docs/decisions/0"

_BELOW = """

```{{toctree}}
:hidden:
:glob:

{pages}
```
"""

_LINK = re.compile(r"(?<=\]\()([^)#\s:]+)(?=[)#])")


def _to_pages(app: Sphinx, page: str, source: list[str]) -> None:
    """Let links to folders lead to the pages that list them, and put what these list below them."""
    folder = (ROOT / page).parent

    def target(match: re.Match[str]) -> str:
        listing = Path(os.path.normpath(folder / match[1]), "README.md")
        return os.path.relpath(listing, folder) if listing.exists() else match[0]

    source[0] = _LINK.sub(target, source[0])
    if page.startswith(_LISTED):
        source[0] = "---\norphan: true\n---\n" + source[0]
    if page in _LISTS:
        source[0] += _BELOW.format(pages="*/README" if page.startswith("examples") else "*")


def setup(app: Sphinx) -> None:
    app.connect("source-read", _to_pages)
