"""The command line: run studies, write reports, look at examples, check an installation."""

from lab.cli.app import app, main

__all__ = ["app", "main"]
