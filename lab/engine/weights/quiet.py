"""What other libraries say, kept short."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def quiet_transformers(*, bars: bool = False) -> Iterator[None]:
    """Keep transformers' warnings, and its progress bars unless wanted, away for a while."""
    from transformers.utils import logging

    level = logging.get_verbosity()
    logging.set_verbosity_error()
    if not bars:
        logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        logging.enable_progress_bar()


def reason(error: BaseException) -> str:
    """The first line of an error's text, as a sentence."""
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__).strip().rstrip(".:!") + "."
