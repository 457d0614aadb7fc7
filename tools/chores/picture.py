"""Draw docs/images/watch.svg anew: the overview of a crawl of a simulated web, as `gossamer watch` shows it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tools.checkout import ROOT

#: The picture that README.md shows.
PICTURE = ROOT / "docs" / "images" / "watch.svg"

#: Columns of the terminal, and seconds of the crawl before the look: the plot has some bars by then.
WIDTH, SECONDS = 110, 75

#: A terminal on a dark ground. Nothing in it is loaded from elsewhere.
FRAME = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img"
 aria-label="The overview of a crawl in a terminal"><style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: {char_height}px;
 line-height: {line_height}px; font-variant-east-asian: full-width; }}
{styles}
</style><defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}</defs><rect fill="#16181d" width="{width}" height="{height}" rx="8"/>
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g></g></svg>
"""


def crawled(folder: Path, port: int, resolve: str, seed: str) -> subprocess.Popen[bytes]:
    """A crawl of the simulated web at this port."""
    line = [
        str(ROOT / "gossamer"),
        "crawl",
        seed,
        "--scope",
        "any",
        "--resolve",
        resolve,
        "--allow-network",
        "127.0.0.0/8",
    ]
    return subprocess.Popen([*line, "-o", "mycrawl", "--quiet"], cwd=folder)


def drawn(folder: Path) -> str:
    """The overview of the crawl in a folder, as a picture."""
    from rich.console import Console

    from gossamer.analysis.watching import CrawlWatch
    from gossamer.cli.watch import overview, past_speeds

    watch = CrawlWatch(folder / "mycrawl")
    console = Console(
        record=True, width=WIDTH, file=(folder / "drawn").open("w", encoding="utf-8"), force_terminal=True
    )
    try:
        now = watch.look()
        for line in overview(now, past_speeds(watch.directory), WIDTH, time.time()):
            console.print(line)
    finally:
        watch.close()
        console.file.close()
    return console.export_svg(code_format=FRAME)


def main(arguments: list[str]) -> int:
    """Crawl, look, and write the picture."""
    from gossamer.simweb import ServeOptions, SimWeb, WebSpec, beside

    if arguments:
        print("usage: ./gossamer dev picture", file=sys.stderr)
        return 2
    spec = WebSpec(pages=40_000, hosts=400, latency=0.02)
    with tempfile.TemporaryDirectory(prefix="picture-") as name, beside(spec, ServeOptions()) as port:
        crawl = crawled(Path(name), port, f"*.sim=127.0.0.1:{port}", f"http://{SimWeb(spec).hosts.name(0)}/")
        try:
            time.sleep(SECONDS)
            picture = drawn(Path(name))
        finally:
            crawl.terminate()
            crawl.wait()
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture, encoding="utf-8")
    print(f"wrote {PICTURE.relative_to(ROOT)}")
    return 0
