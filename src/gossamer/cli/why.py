"""`gossamer why DIR URL`: the story of one URL, told from ledger, log, filters and robots rules."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gossamer.cli.saying import say_json, say_lines

if TYPE_CHECKING:
    from gossamer.operations.story import Story


@click.command()
@click.argument("directory", metavar="DIR")
@click.argument("url")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON.")
def why(directory: str, url: str, as_json: bool) -> None:
    """Tell the story of one URL: why it was fetched, or why not.

    It shows the canonical form, where the URL was discovered, the judgements of filters and robots.txt, the visits, and
    the record in the archive. It works while the crawl runs, and after. Filters and robots.txt judge by their present
    rules.
    """
    from gossamer.operations.story import story_of

    story = story_of(Path(directory), url)
    say_json(story) if as_json else say_lines(lines_of(story))


def lines_of(story: "Story") -> list[str]:
    """A story, for people."""
    lines = [f"{story.url}: {story.told}"]
    lines += [f"canonical:  {one.part} {one.given!r} is written {one.canonical!r}" for one in story.normalised]
    if story.depth is not None and story.relation:
        found = f"{story.relation} of {story.discovered_from}" if story.discovered_from else story.relation
        by = f", by {story.found_by}" if story.found_by else ""
        lines.append(f"discovered: {found}, depth {story.depth}{by}")
    lines += [f"filter:     {one.filter} ({one.gate}): {one.verdict or 'passes'}" for one in story.filters]
    if story.blocked_by:
        lines.append(f"blocked:    by {story.blocked_by}")
    if story.robots is not None:
        where = f" (line {story.robots.line})" if story.robots.line else ""
        lines.append(
            f"robots.txt: {story.robots.ruling}{f' by {story.robots.rule!r}' if story.robots.rule else ''}{where}"
        )
    for visit in story.visits:
        trouble = f": {visit['error']}" if visit.get("error") else ""
        noted = f" (noted: {visit['notes'].replace(' ', ', ')})" if visit.get("notes") else ""
        lines.append(
            f"fetched:    {visit['fetched_at']} try {visit['attempt']}, {visit['outcome']} {visit['status'] or ''} "
            f"{visit['bytes']} bytes in {visit['elapsed_ms']:.0f} ms{trouble}{noted}"
        )
    lines += [f"link:       of {one.page} ({one.relation}): {one.verdict or 'passes'}" for one in story.links]
    if story.redirects:
        lines.append(f"leads to:   {', then '.join(story.redirects)}")
    if story.duplicate_of:
        lines.append(f"same as:    {story.duplicate_of}")
    if story.near_duplicate_of:
        lines.append(f"nearly:     {story.near_duplicate_of}")
    if story.record is not None:
        lines.append("record:     {file} at byte {offset}, {length} bytes".format(**story.record))
    if story.host is not None:
        lines.append(
            f"host:       {story.host['host']} ({story.host['ip']}), delay {story.host['delay']:.3g} s"
            f"{' (' + story.host['delay_reason'] + ')' if story.host['delay_reason'] else ''}, "
            f"robots.txt {story.host['robots_state'] or 'not asked for'}"
            + "".join(f", also called {name}" for name in story.host["aliases"])
        )
    return lines
