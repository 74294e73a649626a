"""Demonstrations: worked questions in the role of the prompt, apart from what is really asked."""

from __future__ import annotations

import re
from itertools import combinations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from toy_examples import crowded, examples, port_amel, sane_river
from toy_tokenizers import FAMILIES, toy, with_template

from lab.data import load_examples
from lab.errors import LabError
from lab.roles import (
    DEMONSTRATIONS,
    LAYOUTS,
    MARKS,
    REFUSAL,
    ROLES,
    SPANS,
    TASKS,
    Prompt,
    Prompter,
    Task,
    align,
    render,
    verdict_tokens,
)

PROPERTY = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
numbers = st.integers(1, len(DEMONSTRATIONS))

# Templates as published: a system prompt, turns that end in an EOS token, roles by other names, and
# a thinking mode that closes an empty block for the reply to come, but not in earlier replies.
SYSTEM = (
    "{% for m in messages %}{% if loop.first and m.role != 'system' %}<|im_start|>system\nBe kind."
    "<|im_end|>\n{% endif %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
THINKING = SYSTEM.replace(
    "assistant\n{% endif %}",
    "assistant\n{% if not enable_thinking %}<think>\n\n</think>\n\n{% endif %}{% endif %}",
)
LLAMA2 = (
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}{% if m.role == 'user' %}"
    "{{ bos_token + '[INST] ' + m.content.strip() + ' [/INST]' }}"
    "{% else %}{{ ' ' + m.content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}"
)
SYSTEM_LAST = (
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}[INST] "
    "{% if loop.last %}Be kind.\n\n{% endif %}{{ m.content }}[/INST]"
    "{% else %}{{ m.content }}{{ eos_token }}{% endif %}{% endfor %}"
)
GEMMA = (
    "{{ bos_token }}{% for m in messages %}<start_of_turn>"
    "{{ 'model' if m.role == 'assistant' else m.role }}\n{{ m.content | trim }}<end_of_turn>\n"
    "{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
CHATS = {
    "chatml": ("chatml_bpe", toy("chatml_bpe").chat_template),
    "system": ("chatml_bpe", SYSTEM),
    "thinking": ("chatml_bpe", THINKING),
    "llama2": ("metaspace_bpe", LLAMA2),
    "system_last": ("metaspace_bpe", SYSTEM_LAST),
    "gemma": ("unigram", GEMMA),
}


def told(prompt: Prompt, name: str) -> str:
    """The characters of a span, from its first to its last token."""
    tokens = prompt.where(name)
    return prompt.text[prompt.offsets[tokens[0]][0] : prompt.offsets[tokens[-1]][1]]


def letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def reply(shown, role: str, words: tuple[str, str] = ("Yes", "No")) -> str:
    """What the role should say to a demonstration."""
    verdict = words[0] if shown.candidate == shown.right else words[1]
    return {"answer": shown.right, "judge": verdict, "repeat": shown.candidate}[ROLES[role].task]


def conversation(prompter: Prompter, number: int, role: str) -> list[dict[str, str]]:
    """The turns of a prompt, each message rendered as a prompt of its own."""
    plain = Prompter(prompter.tokenizer, prompter.layout, "plain")
    start = len(plain.frame.prefix)
    # Demonstrations have no filler: without it, the filler role is the generator.
    kind = "generator" if role == "generator_filler" else role
    turns = []
    for shown in DEMONSTRATIONS[:number]:
        message = plain.render(shown.example, kind, shown.candidate).text[start:]
        turns.append({"role": "user", "content": message})
        turns.append({"role": "assistant", "content": reply(shown, role)})
    message = plain.render(port_amel(), role, "Ida Brandt").text[start:]
    return [*turns, {"role": "user", "content": message}]


# The table


def test_demonstrations_are_balanced_for_judges_and_varied():
    shows = [shown.candidate == shown.right for shown in DEMONSTRATIONS]
    assert shows == [True, False, False, True] == [d.shows_right for d in DEMONSTRATIONS]
    assert [d.right == REFUSAL for d in DEMONSTRATIONS].count(True) == 1
    first_words = {d.question.split()[0] for d in DEMONSTRATIONS}
    assert {"Who", "How", "Where", "In"} == first_words


@pytest.mark.parametrize("shown", DEMONSTRATIONS, ids=lambda d: d.wrong)
def test_a_demonstration_is_short_and_its_answers_stand_in_its_passage(shown):
    assert 40 <= len(shown.passage.split()) <= 70
    assert shown.passage.count(shown.wrong) == 1
    assert shown.right == REFUSAL or shown.passage.count(shown.right) == 1
    assert shown.right.isdigit() <= shown.wrong.isdigit()
    assert shown.wrong not in shown.question


def test_places_and_people_of_demonstrations_occur_nowhere_in_the_built_in_set():
    names = set()
    for shown in DEMONSTRATIONS:
        # Capitals inside of a sentence.
        names |= set(re.findall(r"(?<=[a-z,] )[A-Z]\w+|(?<=[A-Z][a-z]{2} )[A-Z]\w+", shown.passage))
    names -= {"October", "Lake", "Lower"}
    assert {"Quillmere", "Voskuil", "Velsund", "Tirrow", "Sorrach"} <= names
    for example in load_examples("builtin").items:
        said = " ".join([example.question, *(f"{p.title} {p.text}" for p in example.passages)])
        assert not names & set(re.findall(r"\w+", said))


# Every prompt, whatever the tokenizer, the role and the data


@PROPERTY
@given(
    examples(), st.sampled_from(FAMILIES), st.sampled_from(tuple(LAYOUTS)),
    st.sampled_from(tuple(ROLES)), st.sampled_from(("auto", "plain")), numbers,
)  # fmt: skip
def test_spans_stay_a_partition_and_no_mark_points_into_demonstrations(
    case, family, layout, role, format, number
):
    example, candidate = case
    tokenizer = toy(family)
    prompt = Prompter(tokenizer, layout, format, demonstrations=number).render(
        example, role, candidate
    )
    without = Prompter(tokenizer, layout, format).render(example, role, candidate)

    assert list(prompt.token_ids) == tokenizer(prompt.text, add_special_tokens=False)["input_ids"]
    assert len(prompt.spans) == len(prompt) and set(prompt.spans) <= set(SPANS)
    assert prompt.where("sink") == (0,)
    assert prompt.spans[prompt.decision] == "cue"

    block = prompt.where("demonstrations")
    assert block == tuple(range(block[0], block[-1] + 1))
    assert not set(block) & {i for mark in MARKS for i in prompt.where(mark)}
    # Behind them stands what stands there without them: none of it is a demonstration's.
    for name in ("instruction", "context", "question", "candidate"):
        assert bool(prompt.where(name)) == bool(without.where(name))
        if prompt.where(name):
            assert prompt.where(name)[0] > block[-1]
            assert letters(told(prompt, name)) == letters(told(without, name))
    for mark in MARKS:
        assert len(prompt.where(mark)) == len(without.where(mark))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("chat", sorted(set(CHATS) - {"system_last"}))
def test_the_span_is_exactly_what_a_prompt_without_demonstrations_lacks(chat, role, layout):
    tokenizer = with_template(*CHATS[chat])
    prompt = Prompter(tokenizer, layout, demonstrations=2).render(port_amel(), role, "Ida Brandt")
    without = Prompter(tokenizer, layout).render(port_amel(), role, "Ida Brandt")
    rest = [i for i, span in enumerate(prompt.spans) if span != "demonstrations"]
    assert [prompt.spans[i] for i in rest] == list(without.spans)
    assert [prompt.token_ids[i] for i in rest] == list(without.token_ids)
    assert len(rest) + len(prompt.where("demonstrations")) == len(prompt)


@pytest.mark.parametrize("format", ["auto", "plain"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("family", FAMILIES)
def test_all_examples_of_a_role_begin_with_the_same_tokens(family, layout, format):
    prompter = Prompter(toy(family), layout, format, demonstrations=4)
    for role in ROLES:
        one = prompter.render(port_amel(), role, "Ida Brandt")
        two = prompter.render(sane_river(), role, "70 km")
        end = one.where("demonstrations")[-1] + 1
        assert end > len(DEMONSTRATIONS) * 50
        assert one.token_ids[:end] == two.token_ids[:end]
        assert one.spans[:end] == two.spans[:end]
        assert two.where("demonstrations")[-1] + 1 == end


def test_demonstrations_have_no_counterpart():
    prompter = Prompter(toy("chatml_bpe"), demonstrations=2)
    generator = prompter.render(port_amel(), "generator")
    evaluator = prompter.render(port_amel(), "evaluator", "Olaf Renn")
    block = set(generator.where("demonstrations"))
    for mapped in (align(generator, evaluator), align(generator, generator)):
        assert not block & set(mapped.pairs)
    mapped = align(generator, evaluator)
    assert mapped.of(generator.where("context")) == evaluator.where("context")
    with pytest.raises(LabError, match=r"in the demonstrations\) of the generator .* has no"):
        mapped(min(block))


# Chat and plain format


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("number", [1, 2, 4])
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("chat", CHATS)
def test_chat_prompts_are_what_the_template_makes_of_the_whole_conversation(
    chat, role, number, layout
):
    tokenizer = with_template(*CHATS[chat])
    prompter = Prompter(tokenizer, layout, "chat", demonstrations=number)
    assert prompter.render(port_amel(), role, "Ida Brandt").text == tokenizer.apply_chat_template(
        conversation(prompter, number, role),
        tokenize=False, add_generation_prompt=True, enable_thinking=False,
    )  # fmt: skip


@pytest.mark.model
@pytest.mark.parametrize("role", ["generator", "evaluator"])
def test_the_default_models_template_makes_the_same_of_the_conversation(role):
    from lab.engine.loading import outline

    try:
        tokenizer = outline("smollm2-135m-instruct").tokenizer
    except LabError as error:
        pytest.skip(f"the default model cannot be had: {error}")
    prompter = Prompter(tokenizer, demonstrations=4)
    prompt = prompter.render(port_amel(), role, "Ida Brandt")
    made = tokenizer.apply_chat_template(
        conversation(prompter, 4, role), tokenize=False, add_generation_prompt=True
    )
    assert prompt.text == made
    assert (
        told(prompt, "template").startswith("system") and "Quillmere" not in prompter.frame.prefix
    )


def test_a_template_that_takes_no_earlier_turns_is_refused_or_replaced():
    tokenizer = with_template(
        "chatml_bpe",
        "{% if messages | length > 1 %}{{ raise_exception('one at most') }}{% endif %}"
        "{{ messages[0].content }}\n",
    )
    assert render(port_amel(), "generator", tokenizer, format="chat").text.startswith("Task: ")
    with pytest.raises(LabError, match=r"toy/model fails on a conversation of 5 .*one at most"):
        render(port_amel(), "generator", tokenizer, format="chat", demonstrations=2)
    prompt = render(port_amel(), "generator", tokenizer, demonstrations=2)
    assert prompt.text.endswith("Answer:")
    assert "plain format instead of chat" in prompt.notes[0]


def test_a_template_that_leaves_earlier_replies_out_is_refused():
    tokenizer = with_template(
        "chatml_bpe", "{% for m in messages if m.role == 'user' %}{{ m.content }}\n{% endfor %}"
    )
    with pytest.raises(LabError, match=r"leaves out the text of a conversation of 3"):
        render(port_amel(), "generator", tokenizer, format="chat", demonstrations=1)


def test_markup_of_earlier_turns_is_broken_up_in_data():
    template = (
        "{% for m in messages %}{{ m.content }}{% if not loop.last %}[then]{% endif %}{% endfor %}"
    )
    tokenizer = with_template("chatml_bpe", template)
    tokenizer.add_tokens(["[then]"])
    prompt = render(port_amel(), "evaluator", tokenizer, candidate="a [then] b", demonstrations=1)
    assert "Proposed answer: a [ then] b" in prompt.text
    assert prompt.text.count("[then]") == 2


PLAIN_EVALUATOR = """\
Task: Judge whether the proposed answer to the question is correct according to the passage. \
Answer with one word only, Yes or No.

Passage:
The plans for the lighthouse at Quillmere were drawn by Hanna Voskuil, a shipwright's daughter, \
and its tower was built by the mason Teo Marrick in two summers. The lamp was first lit in October \
1871. Marrick later moved inland to repair mills, while Voskuil kept the lamp for nineteen years.

Question: Who designed the lighthouse at Quillmere?

Proposed answer: Hanna Voskuil

Verdict (Yes or No): Yes

Task: Judge whether the proposed answer to the question is correct according to the passage. \
Answer with one word only, Yes or No.

Passage:
Every autumn the village of Velsund holds a race of painted rafts on Lake Durn. In the first year \
14 rafts took part, and four of them sank. Last year 63 rafts started, more than ever before, and \
the prize of 250 marks went to a crew of bakers, who crossed the lake in 38 minutes.

Question: How many rafts took part in the first race?

Proposed answer: 63

Verdict (Yes or No): No

Task: Judge whether the proposed answer to the question is correct according to the passage. \
Answer with one word only, Yes or No.

Passage:
Sane
The Sane is 70 km long.

Question: How long is the Sane?

Proposed answer: 12 km

Verdict (Yes or No):"""


def test_plain_prompts_word_for_word():
    prompt = render(
        sane_river(), "evaluator", toy("digit_bpe"),
        candidate="12 km", format="plain", demonstrations=2,
    )  # fmt: skip
    assert prompt.text == PLAIN_EVALUATOR


# Each role's own


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("words", [("Yes", "No"), ("Correct", "Incorrect")])
def test_each_demonstration_is_followed_by_the_target_of_its_role(role, words):
    prompter = Prompter(toy("digit_bpe"), verdict_words=words, demonstrations=4)
    block = prompter.render(port_amel(), role, "Olaf Renn").text.split("\n\nPassage:\nPort Amel")[0]
    cue = prompter.tasks[ROLES[role].task].cue
    first, second = words[::-1] if ROLES[role].labels_swapped else words
    cue = cue.replace("{first}", first).replace("{second}", second)
    said = re.findall(rf"^{re.escape(cue)} (.*)$", block, re.MULTILINE)
    assert said == [reply(shown, role, words) for shown in DEMONSTRATIONS]


def test_demonstrations_follow_the_role():
    prompter = Prompter(toy("digit_bpe"), demonstrations=4)

    def block(role: str) -> str:
        return told(prompter.render(port_amel(), role, "Olaf Renn"), "demonstrations")

    usual = block("evaluator")
    assert block("generator_filler") == block("generator")
    assert "Proposed answer" not in block("generator") and "The words in" not in block("generator")
    swapped = block("evaluator_labels_swapped")
    assert swapped.replace("No or Yes", "Yes or No") == usual != swapped
    framing = ROLES["evaluator_told_own"].framing
    assert block("evaluator_told_own").count(framing) == 4
    first = block("evaluator_candidate_first")
    assert first.index("Proposed answer: Hanna Voskuil") < first.index("The plans for")
    assert block("evaluator_repeat").count("Repeat the proposed answer") == 4


def test_filler_still_makes_up_for_the_candidate():
    def distance(role: str) -> int:
        prompt = Prompter(toy("chatml_bpe"), demonstrations=2).render(
            port_amel(), role, "the people who came over the river Sane in 1834"
        )
        return prompt.decision - prompt.where("context")[-1]

    wanted, bare = distance("evaluator"), distance("generator")
    assert abs(distance("generator_filler") - wanted) <= 6 < wanted - bare


def test_templates_hold_the_demonstrations_word_for_word():
    prompter = Prompter(toy("chatml_bpe"), "context_first", demonstrations=3)
    template = prompter.templates()["evaluator"]
    assert DEMONSTRATIONS[2].passage in template and DEMONSTRATIONS[3].passage not in template
    values = {"{passage}": "Sane\nThe Sane is 70 km long.", "{question}": "How long is the Sane?"}
    for place, text in (*values.items(), ("{candidate}", "12 km")):
        template = template.replace(place, text)
    assert template == prompter.render(sane_river(), "evaluator", "12 km").text
    found = [Prompter(toy("chatml_bpe"), demonstrations=n).templates() for n in range(5)]
    assert all(one != other for one, other in combinations(found, 2))


# Length and number


@pytest.mark.parametrize("family", ["chatml_bpe", "unigram"])
def test_fitting_counts_demonstrations(family):
    tokenizer, example = toy(family), crowded()
    length = len(Prompter(tokenizer).render(example, "evaluator", "x"))
    options = {"max_tokens": length + 900, "too_long": "drop"}
    kinds = ("generator", "evaluator")
    assert Prompter(tokenizer, **options).fit(example, kinds, ("x",)) is example
    prompter = Prompter(tokenizer, demonstrations=3, **options)
    fitted = prompter.fit(example, kinds, ("x",))
    assert 0 < len(fitted.passages) < len(example.passages)
    for role in kinds:
        prompt = prompter.render(fitted, role, "x")
        assert len(prompt.where("demonstrations")) > 900 and len(prompt) <= length + 900


def test_what_does_not_fit_with_demonstrations_is_told():
    with pytest.raises(LabError, match=r"port-1 .*at most 300 .*or show fewer demonstrations"):
        render(port_amel(), "generator", toy("chatml_bpe"), max_tokens=300, demonstrations=4)
    with pytest.raises(LabError) as problem:
        render(port_amel(), "generator", toy("chatml_bpe"), max_tokens=20)
    assert "demonstrations" not in str(problem.value)


@pytest.mark.parametrize("number", [-1, 5, "2"])
def test_a_number_of_demonstrations_that_there_is_not_is_refused(number):
    with pytest.raises(LabError, match=rf"demonstrations is '?{number}'?: .* from 0 to 4"):
        Prompter(toy("chatml_bpe"), demonstrations=number)


# Other wordings


OTHER = {
    **TASKS,
    "answer": Task("Reply from the text.", "Reply:"),
    "judge": Task("Say {first} if it holds, else {second}. {Nothing} more.", "{first}/{second} ->"),
}


@pytest.mark.parametrize("number", [0, 2])
def test_other_wordings_are_used_in_prompts_and_demonstrations(number):
    prompter = Prompter(toy("digit_bpe"), tasks=OTHER, demonstrations=number)
    evaluator = prompter.render(port_amel(), "evaluator", "Olaf Renn")
    assert evaluator.text.count("Task: Say Yes if it holds, else No. {Nothing} more.") == 1 + number
    assert evaluator.text.endswith("\n\nYes/No ->") and "Judge" not in evaluator.text
    swapped = prompter.render(port_amel(), "evaluator_labels_swapped", "Olaf Renn")
    assert swapped.text.endswith("\n\nNo/Yes ->")
    assert letters(told(evaluator, "cue")) == "YesNo"
    labels = "".join(evaluator.tokens()[i] for i in evaluator.where("labels"))
    assert letters(labels) == "YesNo" * 2
    for role in ("generator", "generator_filler"):
        prompt = prompter.render(port_amel(), role, "Olaf Renn")
        assert prompt.text.count("Task: Reply from the text.") == 1 + number
        assert prompt.text.endswith("Reply:")
    tokens = prompter.verdict_tokens()
    assert prompter.tokenizer("Yes", add_special_tokens=False)["input_ids"][0] in tokens.accept
    assert "{first}" not in prompter.templates()["evaluator"]


def test_verdict_tokens_are_those_behind_the_cue_that_is_used():
    # Behind a bracket, "Yes" may begin with other pieces than behind a colon.
    tokenizer = toy("metaspace_bpe")
    tasks = {**TASKS, "judge": Task("Judge.", "V(")}
    tokens = Prompter(tokenizer, format="plain", tasks=tasks).verdict_tokens()
    assert tokens == verdict_tokens(tokenizer, after="V(")
    assert tokens != Prompter(tokenizer, format="plain").verdict_tokens()


def test_prompters_with_the_same_wording_are_equal():
    tokenizer = toy("chatml_bpe")
    assert Prompter(tokenizer) == Prompter(tokenizer, tasks=dict(TASKS))
    assert len({Prompter(tokenizer), Prompter(tokenizer, tasks=dict(TASKS))}) == 1
    assert len({Prompter(tokenizer), Prompter(tokenizer, tasks=OTHER)}) == 2
    assert Prompter(tokenizer) != Prompter(tokenizer, demonstrations=1)


def test_a_prompter_does_not_follow_later_changes_of_its_wordings():
    wordings = dict(TASKS)
    prompter = Prompter(toy("chatml_bpe"), tasks=wordings)
    wordings["answer"] = OTHER["answer"]
    assert prompter.tasks == TASKS


@pytest.mark.parametrize(
    ("tasks", "wrong"),
    [
        ({}, "worded for nothing: word each of answer, judge, repeat"),
        ({"answer": TASKS["answer"]}, "worded for answer: word each"),
        ({**TASKS, "sing": TASKS["answer"]}, "sing"),
        ({**TASKS, "judge": Task("Judge.", "So: ")}, 'cue of the task "judge" is .So: .: it must'),
        ({**TASKS, "repeat": Task("", "So:")}, 'instruction of the task "repeat" is ..: it must'),
    ],
)  # fmt: skip
def test_wordings_that_cannot_be_used_are_refused(tasks, wrong):
    with pytest.raises(LabError, match=wrong):
        Prompter(toy("chatml_bpe"), tasks=tasks)
