"""`gossamer doctor`: what would hinder a crawl, in one screen."""

import click

from gossamer.cli.saying import say_json

#: A name that is reserved for examples, and that every resolver of the public DNS knows.
KNOWN_HOST = "example.org"


@click.command()
@click.argument("directory", metavar="[DIR]", default="")
@click.option("--host", default=KNOWN_HOST, show_default=True, help="Look up this name; if empty, none.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON for each finding.")
def doctor(directory: str, host: str, as_json: bool) -> int:
    """Check whether anything would hinder a crawl on this machine, or going on with the crawl in DIR.

    It checks versions, limits, memory, disk, names, identity and the crawl's ledger. It changes nothing, and sends only
    one DNS question.

    Exit status: 0 nothing hinders a crawl, 2 something does.
    """
    from gossamer.operations.doctor import examine

    findings = examine(directory, host)
    for finding in findings:
        if as_json:
            say_json(finding)
        else:
            advice = f"; {finding.advice}" if finding.advice else ""
            click.echo(f"{finding.verdict:<5}{finding.about:<11}{finding.text}{advice}")
    return 2 if any(finding.verdict == "bad" for finding in findings) else 0
