"""`gossamer dev`: exists only in a checkout, where the launcher `./gossamer` handles it before this is reached."""

import click


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def dev(arguments: tuple[str, ...]) -> None:
    """Run developers' chores; this works only in a checkout."""
    raise click.UsageError("`dev` works in a checkout of the source only: run ./gossamer dev there")
