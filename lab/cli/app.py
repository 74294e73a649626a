"""The ``lab`` command."""

from __future__ import annotations

import typer

from lab.cli import making, studying

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Role Lens: does a model read, when it judges an answer, what it read when it answered?",
)

app.command()(studying.run)
app.command()(studying.transfer)
app.command()(studying.override)
app.command()(studying.report)
app.command()(making.examples)
app.command("make-examples")(making.make_examples)
app.command("train-adapter")(making.train_adapter)
app.command()(making.doctor)


def main() -> None:
    """Entry point of the ``lab`` command."""
    app()
