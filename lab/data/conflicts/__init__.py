"""Knowledge conflicts: facts that a model may know, and passages that say something else.

A conflict is one question with two passages that differ in the answer alone. The original one
agrees with what is true; the counterfactual one has another answer of the same type in its place.
"""

from lab.data.conflicts.conflict import PASSAGES, Conflict, Conflicts, Stated
from lab.data.conflicts.load import LICENCES, load_conflicts

__all__ = ["LICENCES", "PASSAGES", "Conflict", "Conflicts", "Stated", "load_conflicts"]
