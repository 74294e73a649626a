"""From the arrays of a study to tables and sentences: pure functions, no model, no torch."""

from lab.instruments.summaries.headline import Headline, KeyNumber, headline
from lab.instruments.summaries.reading import HeadOverlap
from lab.instruments.summaries.summary import Tables, tabulate

__all__ = ["HeadOverlap", "Headline", "KeyNumber", "Tables", "headline", "tabulate"]
