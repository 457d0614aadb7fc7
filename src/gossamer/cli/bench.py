"""`gossamer bench NAME`: run a benchmark, print its tables, keep its figures."""

import importlib
import shlex
import signal
import sys
from pathlib import Path
from typing import Any

import click

from gossamer.bench import BENCHES
from gossamer.engine.sheet import nearest
from gossamer.engine.subjects import found_at

#: Where a checkout has the benchmarks of developers.
_OF_CHECKOUT = Path(__file__).parents[3] / "tools" / "bench" / "__init__.py"


def benches() -> dict[str, tuple[str, str]]:
    """Every benchmark that is here, by its name: its place, and what it measures."""
    more = importlib.import_module("tools.bench").BENCHES if _OF_CHECKOUT.is_file() else {}
    return {**BENCHES, **more}


class _Benchmarks(click.Group):
    """Knows benchmarks by name, loads one only when it is called."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        known = benches()
        if cmd_name not in known:
            more = "" if _OF_CHECKOUT.is_file() else "; a checkout of the source has more"
            raise click.UsageError(f"there is no benchmark {cmd_name!r}{nearest(cmd_name, known)}{more}")
        run = found_at(known[cmd_name][0])

        def printed(json_file: str | None, **options: Any) -> None:
            # A benchmark that is ended takes its servers and crawls with it.
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
            report = run(**options)
            report.command = shlex.join(["gossamer", *sys.argv[1:]])
            print(report.text())
            if json_file is not None:
                Path(json_file).write_bytes(report.json())

        own = list(reversed(getattr(run, "__click_params__", ())))
        kept = click.Option(["--json", "json_file"], metavar="FILE", help="Also write the figures as JSON.")
        return click.Command(cmd_name, callback=printed, params=[*own, kept], help=run.__doc__)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Those of every installation, without loading any."""
        with formatter.section("Benchmarks"):
            formatter.write_dl([(name, text) for name, (_, text) in BENCHES.items()])


@click.group(cls=_Benchmarks, invoke_without_command=True, subcommand_metavar="[NAME] [OPTIONS]")
@click.pass_context
def bench(ctx: click.Context) -> None:
    """Run benchmark NAME and print its tables, with machine and versions. Without NAME, list the benchmarks; `bench NAME --help`
    shows the options of one.

    \b
    gossamer bench today
    gossamer bench pages
    gossamer bench peers --site /usr/share/doc/python3.11/html
    """
    if ctx.invoked_subcommand is None:
        for known, (_, text) in benches().items():
            print(f"{known:<15} {text}")
