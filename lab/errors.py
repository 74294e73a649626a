"""The one exception of the lab: what was wrong, where, and what to do."""

from __future__ import annotations


class LabError(Exception):
    """A problem that the user can act on, told in one clear sentence or two.

    The command line prints it without a traceback; in a notebook its text is all that matters.
    Raise it with the thing that was wrong, where (file, line, field, example id), and what to do.
    """
