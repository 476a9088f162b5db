"""Every command and flag of ``forkdeck``; what they do stands in modules of their own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec

import click

from forkdeck import __version__
from forkdeck.errors import ConfigError, ForkDeckError, UsageError

P = ParamSpec("P")

HELP = """Supervise a coding model's parallel forks beside its parent conversation.

\b
forkdeck                open the start screen here
forkdeck demo           watch the whole job offline, without a key
forkdeck run "PROMPT"   do one job without a terminal
forkdeck replay ID      watch a saved session in the same deck
"""

EPILOG = """Inside, ? explains the keys. Nothing is sent anywhere but to the configured endpoint."""

MODES = click.Choice(["plan", "default", "accept-edits", "auto"])


def _guarded(command: Callable[P, int | None]) -> Callable[P, None]:
    """Turn ForkDeck's errors into words and exit codes; 2 is for usage and settings."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            code = command(*args, **kwargs)
        except ForkDeckError as error:
            click.echo(f"forkdeck: {error.what}", err=True)
            if error.remedy:
                click.echo(error.remedy, err=True)
            sys.exit(2 if isinstance(error, UsageError | ConfigError) else 1)
        except KeyboardInterrupt:
            # Here, because click would call it aborted, with exit code 1.
            sys.exit(130)
        sys.exit(code or 0)

    return run


_cwd = click.option("--cwd", metavar="DIR", help="Work in DIR instead of here.")
_model = click.option("--model", metavar="NAME", help="The model to ask.")
_mode = click.option("--mode", type=MODES, help="What needs a question first.")


@click.group(
    help=HELP,
    epilog=EPILOG,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 92},
)
@_model
@_cwd
@_mode
@click.option("--theme", metavar="NAME", help="Colours; `forkdeck config` lists the themes.")
@click.option("--resume", metavar="ID", help="Go on with a saved session.")
@click.option("--continue", "last", is_flag=True, help="Go on with the last session here.")
@click.option("--ascii", is_flag=True, help="Use no characters beyond ASCII.")
@click.version_option(__version__, "-V", "--version", message="forkdeck %(version)s")
@click.pass_context
def forkdeck(ctx: click.Context, **flags: Any) -> None:
    """Open the start screen, or go on with a session; the commands do the rest."""
    if ctx.invoked_subcommand is not None:
        given = [name for name, value in flags.items() if value]
        if given:
            raise click.UsageError(_misplaced(ctx, given[0]))
        return
    _interactive(flags)


def _misplaced(ctx: click.Context, flag: str) -> str:
    """Say where a flag of the deck belongs, when a command was named behind it."""
    name, word = "continue" if flag == "last" else flag, str(ctx.invoked_subcommand)
    command = forkdeck.get_command(ctx, word)
    if command is not None and any(each.name == flag for each in command.params):
        return f"--{name} belongs behind the command: forkdeck {word} --{name} …"
    return f"--{name} is for the deck; `forkdeck {word}` has no such flag."


@_guarded
def _interactive(flags: dict[str, Any]) -> int:
    from forkdeck.cli.interactive import open_deck  # noqa: PLC0415

    return open_deck(flags)


@forkdeck.command()
@click.option("--ascii", is_flag=True, help="Use no characters beyond ASCII.")
@click.option("--theme", metavar="NAME", help="Colours.")
@click.option("--plain", is_flag=True, help="Print lines instead of opening the deck.")
@_guarded
def demo(**flags: Any) -> int:
    """Play the main job offline, against a scripted model.

    A sample project is copied to a temporary directory; the model, the money and nothing else
    are simulated. Without a terminal it prints what happens as lines and ends by itself.
    """
    from forkdeck.cli.demo import show_demo  # noqa: PLC0415

    return show_demo(flags)


@forkdeck.command()
@click.argument("prompt")
@click.option("--json", "as_json", is_flag=True, help="Print every event as a line of JSON.")
@_model
@_mode
@click.option("--budget-usd", metavar="AMOUNT", help="Stop before more than this is spent.")
@click.option(
    "--allow",
    metavar="RULE",
    multiple=True,
    help='Allow this without a question, such as "bash(pytest -q)"; may be repeated.',
)
@_cwd
@click.option("--trust-project", is_flag=True, help="Use the project's own settings, this once.")
@_guarded
def run(**flags: Any) -> int:
    """Do one job without a terminal.

    The answer goes to stdout, progress to stderr, of forks too. PROMPT may be - to read it from
    stdin. What would need a question is denied, unless a rule allows it.

    Exit codes: 0 completed, 1 failed, 2 usage, 3 ended with a partial fork or a denied call, 130
    interrupted.
    """
    from forkdeck.cli.headless import run_prompt  # noqa: PLC0415

    return run_prompt(flags)


@forkdeck.command()
@click.argument("target", required=False)
@click.option("--theme", metavar="NAME", help="Colours.")
@click.option("--ascii", is_flag=True, help="Use no characters beyond ASCII.")
@click.option("--plain", is_flag=True, help="Print lines instead of opening the deck.")
@_guarded
def replay(**flags: Any) -> int:
    """Play a saved session in the same deck.

    TARGET is its id, the beginning of its id, or a log file. Without it the session list opens.
    """
    from forkdeck.cli.interactive import open_replay  # noqa: PLC0415

    return open_replay(flags)


@forkdeck.command()
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True,
              help="How many to list.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
@_guarded
def sessions(**flags: Any) -> int:
    """List saved sessions: date, project, forks, cost, prompt."""
    from forkdeck.cli.listing import list_saved_sessions  # noqa: PLC0415

    return list_saved_sessions(flags)


@forkdeck.command()
@click.argument("work", metavar="SESSION/FORK")
@click.option("--method", type=click.Choice(["patch", "cherry-pick"]), default="patch",
              show_default=True, help="As changes to the tree, or commit by commit.")  # fmt: skip
@_cwd
@_guarded
def apply(**flags: Any) -> int:
    """Merge a write fork's saved work into the tree here, 3-way.

    A conflict changes nothing. SESSION/FORK is printed when a fork's work was saved.
    """
    from forkdeck.cli.saved_work import apply_saved  # noqa: PLC0415

    return apply_saved(flags)


@forkdeck.command()
@click.option("--clean", is_flag=True, help="Remove worktrees whose work is saved.")
@_cwd
@_guarded
def worktrees(**flags: Any) -> int:
    """List worktrees and saved work of this repository.

    --clean removes only worktrees whose work is saved.
    """
    from forkdeck.cli.saved_work import list_worktrees  # noqa: PLC0415

    return list_worktrees(flags)


@forkdeck.command()
@_cwd
@_guarded
def config(**flags: Any) -> int:
    """Show every setting with its value and where it comes from."""
    from forkdeck.cli.listing import show_config  # noqa: PLC0415

    return show_config(flags)


@forkdeck.command()
@_cwd
@_guarded
def doctor(**flags: Any) -> int:
    """Say what works on this machine, what does not, and the remedy."""
    from forkdeck.cli.doctor import show_health  # noqa: PLC0415

    return show_health(flags)


@forkdeck.command()
@click.option("--port", default=0, show_default="a free one", help="Port on 127.0.0.1.")
@click.option(
    "--scenario",
    metavar="NAME|FILE",
    default="investigator",
    show_default=True,
    help="A built-in scenario by name, or a file; an unknown name lists them.",
)
@_guarded
def rehearsal(**flags: Any) -> int:
    """Start the loopback model alone and print its address and token."""
    from forkdeck.cli.rehearsal import serve  # noqa: PLC0415

    return serve(flags)
