"""Which answers say "the passage does not say", so that they can be scored as the empty answer."""

from __future__ import annotations

import re

_SOURCE = (
    r"(?:(?:the|this|that|these|provided|given|above|supplied)\s+)*"
    r"(?:passages?|text|context|article|paragraphs?|document|excerpt|story|information)"
    r"(?:\s+(?:provided|given|above|supplied))?"
)
_IN_SOURCE = (
    r"(?:\s+(?:anywhere\s+)?(?:in|by|from|within|with|based\s+on|according\s+to)\s+" + _SOURCE + ")"
)
_NOT = r"(?:does\s+not|doesn't|do\s+not|don't|did\s+not|didn't)"
_CANNOT = r"(?:cannot|can\s+not|can't|could\s+not|couldn't)"
_IS = r"(?:\s+(?:is|are)|'s)"
_ISNT = r"(?:\s+(?:is|are|was|were)(?:\s+not|n't)|'s\s+not)"
_IT = r"(?:it|this|that|the\s+answer|(?:the|this)\s+question)"
_HOW = r"(?:(?:explicitly|clearly|directly|specifically)\s+)?"
_TOLD = r"(?:mentioned|stated|given|specified|provided|answerable|answered|said)"
_TOLD_THERE = (
    r"(?:mentioned|stated|given|specified|provided|answered|said|indicated|discussed|addressed|"
    r"disclosed|included|found|available|present|contained|known)"
)
_SAY = (
    r"(?:say|mention|state|specify|tell|provide|give|contain|indicate|answer|include|discuss|"
    r"address|reveal)"
)
_NEWS = r"(?:information|answer|mention|evidence|details?)"
# A book or a story may be about what it leaves out; a passage is only ever what was read.
_IN_PASSAGE = (
    r"(?:\s+(?:anywhere\s+)?(?:in|by|from|within)\s+(?:the|this)\s+"
    r"(?:(?:provided|given|above|supplied)\s+\w+|(?:passages?|paragraphs?|excerpt|context)))"
)
# What may follow a refusal: the thing refused, but no turn that may bring an answer after all.
_REST = r"(?:\s+(?:(?!\b(?:but|however|although|though|only|except|probably|likely)\b).)*)?"
_ASKED = (
    r"(?:\s+(?=(?:the|this|that|it|who|whom|whose|what|when|where|why|which|how|if|whether|from|"
    r"based)\b(?!\s+lie))(?:(?!\b(?:but|however|although|though|only|except)\b).)*)?"
)

_REFUSALS = (
    r"unanswerable|un-answerable|no\s*answer|n/a|none\s+of\s+the\s+above",
    rf"(?:{_IT}{_IS}\s+)?(?:unanswerable|impossible\s+to\s+(?:say|tell|know|determine|answer))"
    rf"{_IN_SOURCE}?",
    rf"not\s+{_HOW}{_TOLD}{_IN_SOURCE}?",
    rf"not\s+{_HOW}{_TOLD_THERE}{_IN_SOURCE}|unknown{_IN_SOURCE}",
    rf"[\w\s'-]{{1,80}}?{_ISNT}\s+{_HOW}{_TOLD_THERE}{_IN_SOURCE}",
    rf"(?:{_IT}|the\s+[a-z]+){_ISNT}\s+{_HOW}{_TOLD}",
    rf"(?:{_IT}|the\s+information){_ISNT}{_IN_SOURCE}",
    rf"(?:it{_ISNT}|not)\s+possible\s+to\s+(?:say|tell|know|determine|answer){_REST}",
    rf"{_IT}\s+{_CANNOT}\s+be\s+(?:answered|determined|inferred|found|known){_REST}",
    rf"{_CANNOT}\s+(?:be\s+)?(?:answer|answered|determine|determined|say|tell){_IN_SOURCE}?",
    rf"i\s+(?:{_NOT}\s+know|{_CANNOT}\s+(?:answer|say|tell|determine|find)){_ASKED}",
    r"(?:don't|do\s+not)\s+know",
    rf"{_SOURCE}\s+{_NOT}\s+{_HOW}{_SAY}{_REST}",
    rf"{_SOURCE}\s+(?:gives|provides|contains|has|makes|offers)\s+no\s+{_NEWS}{_REST}",
    rf"(?:not\s+enough|insufficient|not\s+sufficient)\s+information{_IN_SOURCE}?",
    rf"no\s+{_NEWS}(?:\s+(?:is\s+)?(?:given|provided|available|stated|found)){_IN_SOURCE}?",
    rf"no\s+{_NEWS}{_IN_SOURCE}",
    rf"no\s+{_NEWS}\s+(?:of|on|about|regarding)\s+(?:this|that|it|these|those){_IN_SOURCE}",
    rf"no\s+{_NEWS}\s+(?:of|on|about|regarding)\s+[\w\s'-]{{1,80}}?{_IN_PASSAGE}",
    r"(?:the|this|that|such)\s+(?:information|answer|details?)"
    rf"(?:\s+(?:is|are)(?:\s+not|n't)|'s\s+not)\s+(?:available|included|found){_IN_SOURCE}?",
    rf"there(?:\s+is|'s)\s+(?:no|not\s+enough|insufficient)\s+(?:information|answer|mention){_REST}",
    rf"(?:(?:i\s+am|i'm)\s+)?unable\s+to\s+(?:answer|determine|say|tell){_REST}",
)
_REFUSAL = re.compile(
    r"(?:(?:(?:i\s+am|i'm)\s+)?sorry\s*,?\s*(?:but\s+)?)?(?:answer\s*:\s*)?"
    + rf"(?:(?:based\s+on|according\s+to|from)\s+{_SOURCE}\s*,\s*)?"
    + "(?:"
    + "|".join(f"(?:{pattern})" for pattern in _REFUSALS)
    + ")"
)


def is_refusal(text: str) -> bool:
    """Whether an answer says nothing but that the passage gives no answer (or is blank).

    Only known wordings count, and every sentence must be one: "unanswerable", "not answerable",
    "no answer", "n/a", "none of the above"; "(it is) not mentioned | stated | given ... (in the
    passage)"; "the passage does not say | mention ... X"; "there is no (not enough) information
    ..."; "no mention of X in the passage"; "the information is not available"; "it cannot be
    answered | determined ..."; "I don't know", "I cannot answer", "unable to answer"; with an
    opening "Sorry, but" or "Answer:". Words that may be a real answer are never refusals: "no",
    "none", "nothing", "nobody", "zero", "unknown", "NA", "not guilty"; nor is a refusal that goes
    on with "but", "however" or the like.
    """
    plain = text.replace("\u2019", "'").casefold()
    sentences = [part.strip(" \t\r\"'`*()[],:-") for part in re.split(r"[.!?\n]+", plain)]
    return all(not part or _REFUSAL.fullmatch(part) for part in sentences) and (
        not text.strip() or any(sentences)
    )


def map_refusal(text: str) -> str:
    """The answer with white space at its ends removed, or "" where it is a refusal."""
    return "" if is_refusal(text) else text.strip()
