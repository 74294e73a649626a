"""What all commands share: words of their help, and how errors and messages are told."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import typer

from lab.errors import LabError

SOURCES = (
    "builtin, builtin:FAMILY, squad2:FILE, squad2:FILE#TITLE,TITLE, drop:FILE, hotpotqa:FILE, "
    "musique:FILE, jsonl:FILE, world:test/SEED/N or world:train/SEED/N"
)

TO_LEARN = (
    "world:train/SEED/N, squad2:FILE#TITLE,TITLE, drop:FILE, hotpotqa:FILE, musique:FILE or "
    "jsonl:FILE (builtin and world:test are there to evaluate on)"
)

CONFLICTS = "builtin, lre:FOLDER, known:FILE or compmech:FILE"

DEFAULT_MODEL = "smollm2-135m-instruct"

ADAPTERS = "both, generator or evaluator for the default model, or an adapter's folder."

STOPPED = "stopped."
STOPPED_RUN = "stopped. Finished examples are stored; run the same command again to go on."
STOPPED_OVERRIDE = "stopped. What is finished is stored; run the same command again to go on."
STOPPED_TRAINING = "stopped. What was learned is stored; run the same command again to go on."


@contextmanager
def plain_errors(stopped: str = STOPPED) -> Iterator[None]:
    """Turn what a user can mend into one message and an exit code, without a traceback."""
    try:
        yield
    except LabError as error:
        typer.secho(f"lab: {error}", fg=typer.colors.RED, err=True)
        raise typer.Exit(1) from None
    except MemoryError:
        typer.secho("lab: there is too little memory for this.", fg=typer.colors.RED, err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.echo(f"\nlab: {stopped}", err=True)
        raise typer.Exit(130) from None


@contextmanager
def messages() -> Iterator[None]:
    """Let the lab's log lines through to standard error, as plain sentences."""
    log = logging.getLogger("lab")
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("lab: %(message)s"))
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


def two_words(text: str | None) -> tuple[str, str] | None:
    """The verdict words of an option; the recipe checks them."""
    if text is None:
        return None
    return cast("tuple[str, str]", tuple(word.strip() for word in text.split(",")))


def place(text: str) -> Path:
    """The file or folder that an option names; nothing is no name."""
    if not text.strip():
        raise typer.BadParameter("it is empty: give a name.")
    return Path(text)


def command(*words: object) -> str:
    """A command as it can be copied into a shell."""
    return shlex.join(map(str, words))
