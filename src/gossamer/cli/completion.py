"""`gossamer --install-completion`: puts a completion script where the user's shell looks for one."""

import os
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from gossamer.model.errors import UsageError

#: Shells that are known, and where each looks for completions of a user, below the home directory.
PLACES = {
    "bash": ".local/share/bash-completion/completions/gossamer",
    "zsh": ".zfunc/_gossamer",
    "fish": ".config/fish/completions/gossamer.fish",
}

#: The variable by which the script asks the program for completions (click's convention).
VARIABLE = "_GOSSAMER_COMPLETE"


def install(commands: click.Command, shell: str) -> str:
    """Write the script for a shell, or for that of $SHELL; returns what to tell the user.

    Raises:
        UsageError: the shell is not known, or the file cannot be written.
    """
    name = shell or Path(os.environ.get("SHELL", "")).name
    kind = get_completion_class(name) if name in PLACES else None
    if kind is None:
        raise UsageError(
            f"--install-completion supports {', '.join(PLACES)}; name one of them, not {name or 'nothing'!r}"
        )
    path = Path.home() / PLACES[name]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(kind(commands, {}, "gossamer", VARIABLE).source(), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None
    hint = "; add `fpath+=~/.zfunc` before `compinit` in ~/.zshrc" if name == "zsh" else ""
    return f"wrote {path}; start a new {name} to use it{hint}"
