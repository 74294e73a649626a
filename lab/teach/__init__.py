"""What makes the notebooks a course: exercises that say what is wrong, and guesses to be recorded.

``check("03.ratio", answer, study)`` prints one line. It computes the truth anew from the objects of
the notebook, and where the answer is one that a usual mistake gives, it names the mistake.
``predict`` records a guess before a result is shown, ``refused`` shows the words of a refusal
without a traceback. All of it is plain text, so it works in every notebook and without one.
"""

from lab.teach.check import EXERCISES, assess, check
from lab.teach.exercise import Exercise
from lab.teach.predictions import Prediction, predict
from lab.teach.refusals import refused

__all__ = ["EXERCISES", "Exercise", "Prediction", "assess", "check", "predict", "refused"]
