"""The page on which people ask: a form, and the answer as text. What strangers wrote stands in it escaped, and it has no script.

Place in the flow: :mod:`serving` shows it to browsers.
"""

import base64
import hashlib
from html import escape

#: Bytes and rows of an answer that are shown; programs get all of it.
_MOST_BYTES = 2_000_000
_MOST_ROWS = 2_000

_STYLE = (
    "body{font-family:sans-serif;margin:2em}textarea{width:100%;height:10em;font-family:monospace}"
    "table{border-collapse:collapse}td,th{border:1px solid #ccc;padding:.2em .5em;text-align:left;font-family:monospace}"
    "pre{white-space:pre-wrap}.error{color:#a00}"
)
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()

#: Nothing but this page's own style may run, load or be framed, and its form leads nowhere else.
HTML_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{_HASH}'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}

_EXAMPLE = (
    "SELECT ?type (count(*) AS ?number)\nWHERE { ?thing a ?type }\nGROUP BY ?type ORDER BY DESC(?number) LIMIT 50"
)


class Shown:
    """The beginning of an answer."""

    def __init__(self) -> None:
        self.form = ""
        self._data = bytearray()
        self._is_cut = False

    def take(self, piece: bytes) -> None:
        """Add a piece, or drop it where there is enough."""
        room = _MOST_BYTES - len(self._data)
        self._is_cut = self._is_cut or len(piece) > room
        self._data += piece[:room]

    def html(self) -> str:
        """It as HTML."""
        text = self._data.decode("utf-8", "replace")
        if self.form != "tsv":
            note = "<p>The beginning is shown.</p>" if self._is_cut else ""
            return f"<pre>{escape(text)}</pre>{note}"
        # A literal has its own ends of lines escaped, but not those that only Python takes for some.
        rows = [line.split("\t") for line in text.removesuffix("\n").split("\n") if text]
        is_cut = self._is_cut or len(rows) > _MOST_ROWS + 1
        head = "".join(f"<th>{escape(cell)}</th>" for cell in (rows[0] if rows else []))
        body = "".join(
            "<tr>{}</tr>".format("".join(f"<td>{escape(cell)}</td>" for cell in row))
            for row in rows[1 : _MOST_ROWS + 1]
        )
        note = f"<p>The first {min(len(rows) - 1, _MOST_ROWS)} rows are shown.</p>" if is_cut else ""
        return f"<table><tr>{head}</tr>{body}</table>{note}"


def page(query: str, shown: Shown | None = None, error: str = "") -> str:
    """The page.

    Args:
        query: what was asked; an example stands in the form where it is empty.
        shown: the answer.
        error: why there is none.
    """
    told = f'<p class="error">{escape(error)}</p>' if error else ""
    return (
        "<!doctype html><html lang=en><head><meta charset=utf-8><title>SPARQL</title>"
        f"<style>{_STYLE}</style></head><body><h1>SPARQL</h1>"
        f'<form method="get"><label>Query <textarea name="query">\n{escape(query or _EXAMPLE)}</textarea></label>'
        "<p><button>Ask</button> Every page has a graph, named by its URL. "
        "The prefixes of RDFa need not be declared.</p></form>"
        f"{told}{shown.html() if shown is not None else ''}</body></html>\n"
    )
