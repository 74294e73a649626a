"""The section on what training changes: what it says, what it marks, and how it looks."""

from __future__ import annotations

import re
from html import unescape

import numpy as np
import pytest
from synthetic_study import synthetic_study

from lab.errors import LabError
from lab.instruments.schemes import SCHEMES
from lab.instruments.summaries.transfer import TRANSFER_METRICS, Run, matrix
from lab.views import figures, palette
from lab.views.content import trained as content
from lab.views.content import transfer
from lab.views.report import render_report, write_report

HOSTILE = "</script><img src=x onerror='window.hacked=1'>\"'`{{7*7}}"
UP, DOWN = "▲\u00a0", "▼\u00a0"
ATTENTION = ["mass", "norm_mass", "mark_mass", "norm_mark_mass", "span_tokens", "attention"]

CURVE = [
    {"step": 400, "questions": 60, "answers_exact": 0.7, "auroc": 0.9, "accepted_wrong": 0.1},
    {"step": 0, "questions": 60, "answers_exact": 0.2, "auroc": 0.5, "accepted_wrong": 0.4},
    {"step": 100, "questions": 60, "answers_exact": 0.5, "auroc": None},
]


def trained(
    accepts: float = 0.0,
    wrong: float = 0.0,
    reads: float = 1.0,
    seed: int = 0,
    own_passages: bool = True,
):
    """The study after a training that moves all log-odds, those of wrong candidates, or reading."""
    dataset, _ = synthetic_study(n=24, layers=3, heads=2)
    dataset = dataset.copy(deep=True)
    if own_passages:
        dataset["cluster"] = dataset["cluster"].copy(data=dataset["example"].values)
    noise = np.random.default_rng(seed).normal(0, 0.05, dataset["log_odds"].shape)
    dataset["log_odds"] = dataset["log_odds"] + accepts + noise
    dataset["log_odds"].loc[{"rung": ["same_type", "same_passage", "other_passage"]}] += wrong
    at = {"role": "evaluator", "span": "context"}
    dataset["mass"].loc[at] = dataset["mass"].loc[at] * reads
    return dataset


@pytest.fixture(scope="module")
def runs():
    """Generator training over-accepts; evaluator training rejects what is wrong, and reads."""
    return [
        Run("base", trained()),
        Run("generator", trained(accepts=5, seed=1), 0),
        Run("generator", trained(accepts=6, seed=2), 1),
        Run("evaluator", trained(accepts=2.5, wrong=-5, reads=2), 0),
    ]


@pytest.fixture(scope="module")
def provenance():
    _, about = synthetic_study(n=24, layers=3, heads=2)
    adapter = {"name": "mine", "recipe": {"role": "evaluator", "seed": 0}, "curve": CURVE}
    return about | {"adapter": adapter}


@pytest.fixture(scope="module")
def page(runs, provenance, tmp_path_factory):
    path = tmp_path_factory.mktemp("training") / "report.html"
    return write_report(runs[-1].dataset, provenance, path, runs)


@pytest.fixture(scope="module")
def html(page):
    return page.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def found(runs):
    return content.Training.of(runs)


def section_of(html: str) -> str:
    part = re.search(r'<section id="training".*?</section>', html, re.DOTALL)
    return part.group(0) if part else ""


def words_of(html: str) -> str:
    return re.sub(r"[ \n\t]+", " ", unescape(re.sub(r"<[^>]+>", " ", html)))


def lines(table, row: int, column: str) -> tuple[str, ...]:
    """All lines of a cell of the matrix, by measure."""
    cell = table.rows[row].cells[TRANSFER_METRICS.index(column)]
    return (cell.text, cell.small, *cell.more)


# --- what it says -------------------------------------------------------------------------------


def test_the_lead_says_what_was_trained_and_how_it_is_compared(html):
    words = words_of(section_of(html))
    assert "untrained, trained to answer (2 training seeds) and trained to judge" in words
    assert "the same 24 questions" in words
    assert "the wrong one is the same for all versions" in words
    assert "luck of the training" in words
    # Verdicts were moved, answers were not.
    assert "word for word those of the version “untrained”: trained to answer, 100" in words
    assert '<a href="#training">Training</a>' in html


def test_one_training_each_is_said_to_be_one(runs):
    assert "Each was trained once" in content.lead(content.Training.of([runs[0], runs[3]]))


def test_known_differences_have_the_right_sign_and_mark(found):
    table = transfer.matrix_table(found)
    assert [row.label for row in table.rows] == [
        "untrained", "trained to answer", "range of 2 seeds", "trained to judge",
    ]  # fmt: skip
    assert len(lines(table, 0, "tnr")) == 3  # the reference has no difference
    assert lines(table, 1, "acceptance")[3].startswith(f"{UP}+")
    assert lines(table, 1, "over_acceptance")[3].startswith(f"{UP}+")
    assert lines(table, 1, "tnr")[3].startswith(f"{DOWN}\u2212")
    assert lines(table, 3, "tpr")[3].startswith(f"{UP}+")
    assert lines(table, 1, "ga")[3] == "0.00"


def test_a_mark_is_there_only_where_the_interval_excludes_zero(found):
    table = transfer.matrix_table(found)
    for name, index in (("generator", 1), ("evaluator", 3)):
        for metric in TRANSFER_METRICS:
            rows = found.matrix[
                (found.matrix["run"] == name)
                & (found.matrix["metric"] == metric)
                & (found.matrix["scope"] == "all")
            ]
            low, high = rows[["difference_low", "difference_high"]].iloc[0]
            marked = lines(table, index, metric)[3][0] in "▲▼"
            assert marked == (low > 0 or high < 0)


def test_no_mark_rests_on_a_handful_of_questions(found):
    few = found.matrix[(found.matrix["n"] < 10) & (found.matrix["difference_low"] > 0)]
    assert len(few)
    groups = transfer.group_table(found)
    small = [i for i, row in enumerate(groups.rows) if re.search(r": \d answers?", row.label)]
    for i in small:
        cells = [cell for row in groups.rows[i + 1 : i + 4] for cell in row.cells]
        assert not any("▲" in line or "▼" in line for cell in cells for line in cell.more)


def test_few_passages_are_owned_up_to_and_show_no_change():
    base, other = trained(own_passages=False), trained(accepts=5, own_passages=False)
    found = content.Training.of([Run("base", base), Run("generator", other, 0)])
    assert "share 8 passages: with so few, intervals are too narrow" in content.lead(found)
    cells = [line for m in TRANSFER_METRICS for line in lines(transfer.matrix_table(found), 1, m)]
    assert not any(mark in line for line in cells for mark in (UP, DOWN))
    said = transfer.claims_table(found).rows[0].cells[0]
    assert said.text == "cannot be said"
    assert said.small == "questions on 8 passages are too few"


def test_what_says_nothing_of_the_reference_says_nothing_of_a_difference(runs):
    mute = runs[0].dataset.copy(deep=True)
    mute["label_mass"] = mute["label_mass"] * 0 + 0.04
    found = content.Training.of([Run("base", mute), *runs[1:]])
    table = transfer.matrix_table(found)
    assert lines(table, 0, "tnr")[0].endswith("†")
    for row in (1, 3):
        assert not lines(table, row, "tnr")[0].endswith("†"), "its own value means something"
        assert not any(UP in line or DOWN in line for line in lines(table, row, "tnr"))
    drawn = {row["label"]: row["cells"] for row in transfer.transfer_data(found)["rows"]}
    assert drawn["rejects wrong ones"] == [None, None]
    claim = found.claims[0]
    assert claim.seen == "cannot be said"
    assert "the model that it is compared with says a verdict word with 4%" in claim.caveat


def test_one_of_several_trainings_stands_beside_the_base_with_its_own_change(runs, provenance):
    mine, other = (
        Run("generator", run.dataset, run.seed, name)
        for run, name in zip(runs[1:3], ("mine", "other"), strict=True)
    )
    about = provenance | {"adapter": {"name": "mine", "recipe": {"role": "generator"}}}
    for several in ([runs[0], mine, other], [runs[0], mine]):
        html = render_report(mine.dataset, about, several)
        part = re.search(r'<section id="behaviour".*?</section>', html, re.DOTALL).group(0)
        assert UP in part


def test_the_table_of_behaviour_sets_no_arrow_that_the_matrix_withholds(runs, provenance):
    mute = runs[1].dataset.copy(deep=True)
    mute["label_mass"] = mute["label_mass"] * 0 + 0.04
    about = provenance | {"adapter": {"name": "mine", "recipe": {"role": "generator"}}}
    loud = render_report(runs[1].dataset, about, [runs[0], runs[1]])
    quiet = render_report(mute, about, [runs[0], Run("generator", mute, 0)])
    behaviour = [
        re.search(r'<section id="behaviour".*?</section>', html, re.DOTALL).group(0)
        for html in (loud, quiet)
    ]
    assert UP in behaviour[0]
    assert UP not in behaviour[1]


def test_the_range_of_seeds_is_below_their_mean(found):
    table = transfer.matrix_table(found)
    row = found.matrix[(found.matrix["run"] == "generator") & (found.matrix["metric"] == "tnr")]
    low, high = row[["seed_low", "seed_high"]].iloc[0]
    assert lines(table, 2, "tnr")[1] == f"{low:.2f} to {high:.2f}"
    assert table.rows[2].minor


def test_the_published_claims_are_judged(found):
    rows = {row.label: row.cells[0].text for row in transfer.claims_table(found).rows}
    assert rows["Training to answer makes the judge over-accept"] == "seen"
    assert rows["Training to answer makes the judge accept wrong candidates"] == "seen"
    assert rows["Training to judge makes answers worse"] == "not seen"
    assert rows["Training to judge makes the judge over-conservative"] == "opposite"


def test_measures_that_say_nothing_of_a_model_are_marked_and_not_drawn(runs):
    mute = runs[1].dataset.copy(deep=True)
    mute["label_mass"] = mute["label_mass"] * 0 + 0.04
    found = content.Training.of([runs[0], Run("generator", mute, 0), runs[3]])
    table = transfer.matrix_table(found)
    for metric in TRANSFER_METRICS:
        shown = lines(table, 1, metric)
        says = metric == "ga"
        assert shown[0].endswith("†") != says
        assert says or not any(UP in line or DOWN in line for line in shown)
        assert not lines(table, 2, metric)[0].endswith("†")
    control = content.Training.of([runs[0], Run("verdict-only", mute, 0)])
    assert not transfer.without_meaning(control), "its log-odds were trained, nothing else"
    (why,) = transfer.without_meaning(found)
    assert "Trained to answer: asked to judge" in why and "4% probability" in why
    drawn = transfer.transfer_data(found)["rows"]
    assert [row["cells"][0] is not None for row in drawn] == [m == "ga" for m in TRANSFER_METRICS]
    assert all(row["cells"][1] is not None for row in drawn)


def test_absence_of_evidence_is_not_sold_as_evidence_of_absence(html):
    assert "is no evidence of absence" in words_of(section_of(html))


def test_reading_twice_as_much_halves_the_ratio(found):
    table = transfer.inside_table(found)
    ratio = table.rows[2].cells[0]
    assert ratio.more[1] == f"{DOWN}0.50\u00a0\u00d7"
    assert table.rows[2].cells[list(transfer.INSIDE).index("evaluator/context")].more[1][0] == "▲"


def test_heads_that_changed_are_buttons_in_the_order_of_their_change(found, html):
    table = transfer.heads_table(found, k=4)
    labels = [row.label for row in table.rows if row.group]
    assert "trained to judge, when judging" in labels
    judging = table.rows[-4:]
    changes = [float(re.match(r"\+([\d.]+)", row.cells[2].text).group(1)) for row in judging]
    assert changes == sorted(changes, reverse=True) and changes[-1] > 0
    assert f'data-head="{judging[0].head}"' in section_of(html)
    assert "0 when answering and 6 when judging (of 6)" in transfer.heads_lead(found)


def test_groups_say_how_many_they_are(found):
    labels = [row.label for row in transfer.group_table(found).rows if row.group]
    assert labels[0] == "builtin: 9 answers, 9 pairs of candidates"


# --- beside the study's own numbers -------------------------------------------------------------


def behaviour_of(html: str) -> list[list[str]]:
    table = re.search(r"<table.*?</table>", html[html.index('id="behaviour"') :], re.DOTALL)
    rows = re.findall(r"<tr.*?</tr>", table.group(0), re.DOTALL)
    return [[words_of(c).strip() for c in re.findall(r"<t[hd].*?</t[hd]>", r)] for r in rows]


def test_the_untrained_model_stands_beside_a_trained_one(html, runs):
    head, *rows = behaviour_of(html)
    assert head[2] == "untrained, and change"
    accepts = next(row for row in rows if row[0] == "accepts")
    table = matrix([runs[0], runs[3]]).query("metric == 'acceptance' and scope == 'all'")
    value, gap = table["value"].iloc[0], table["difference"].iloc[1]
    assert accepts[2].startswith(f"{value:.2f} [")
    assert f"{UP}+{gap:.2f} [" in accepts[2]
    kappa = next(row for row in rows if row[0] == "agreement beyond chance")
    assert "+" not in kappa[2]  # its own answers differ, so this is not paired


def test_an_untrained_study_has_no_such_column(runs):
    _, about = synthetic_study(n=24, layers=3, heads=2)
    html = render_report(runs[0].dataset, about, runs)
    assert "untrained, and change" not in html
    assert section_of(html)


@pytest.mark.parametrize("kept", [[], [0], [1, 2]])
def test_one_model_is_nothing_to_compare(runs, kept):
    assert content.Training.of([runs[i] for i in kept]) is None


def test_without_runs_there_is_no_section(runs, provenance):
    html = render_report(runs[-1].dataset, provenance)
    assert not section_of(html)
    assert "#training" not in html
    assert "untrained, and change" not in html


def test_without_attention_the_rest_stands(runs, provenance):
    bare = [Run(run.name, run.dataset.drop_vars(ATTENTION), run.seed) for run in runs]
    section = section_of(render_report(bare[-1].dataset, provenance, bare))
    assert "<h3>In numbers</h3>" in section and "<h3>Inside</h3>" not in section


# --- learning curves ----------------------------------------------------------------------------


def test_curves_are_drawn_in_the_order_of_steps(html):
    section = section_of(html)
    assert "0.20 at step 0, 0.70 at step 400" in section
    assert "M0.0 80.0L25.0 50.0L100.0 30.0" in section
    assert "n = 60 questions; no interval was kept." in section
    assert section.count('class="rl-curve"') == 3


@pytest.mark.parametrize("curve", [None, "much", [], [3, {"step": "1"}], [{"step": 0}], {}])
def test_a_curve_that_is_none_is_left_out(found, curve):
    section = transfer.section(found, {"adapter": {"name": "mine", "curve": curve}})
    assert section.curves == []


# --- figures for notebooks ----------------------------------------------------------------------


def test_the_notebook_figure_shows_the_matrix(found):
    figure = figures.transfer(found.matrix)
    titles = [note.text for note in figure.layout.annotations]
    assert "over-acceptance" in titles
    assert "untrained" in titles[-1] and "95 %" in titles[-1]
    assert len(figure.data) == 2 * len(TRANSFER_METRICS)
    shown = figure.data[2 * TRANSFER_METRICS.index("tnr")]
    assert (shown.y[0], shown.x[0] < 0) == ("trained to answer", True)


def test_the_notebook_figure_shows_learning_curves():
    figure = figures.learning_curves(CURVE)
    assert list(figure.data[0].x) == [0, 100, 400]
    assert figure.layout.title.text == "Answers exactly right: 0.20 at step 0, 0.70 at step 400"
    assert "n = 60" in figure.layout.annotations[-1].text


def test_figures_of_nothing_are_refused(runs, found):
    with pytest.raises(LabError, match="compares no models"):
        figures.transfer(matrix(runs[:1]))
    with pytest.raises(LabError, match="compares no models on dataset 'nowhere'"):
        figures.transfer(found.matrix, "dataset", "nowhere")
    with pytest.raises(LabError, match="no point"):
        figures.learning_curves([{"step": 3}])


def test_page_and_notebook_use_the_same_colours():
    rules = palette.css_variables("light")
    assert set(transfer.COLOURS) == set(palette.RUNS)
    for run, name in transfer.COLOURS.items():
        assert f"--{name}:{palette.RUNS[run].light};" in rules


# --- text is text -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hostile_page(runs, provenance, tmp_path_factory):
    path = tmp_path_factory.mktemp("hostile") / "report.html"
    named = [runs[0], Run(HOSTILE, runs[1].dataset, 0), Run("x" * 300, runs[3].dataset, 0)]
    return write_report(runs[-1].dataset, provenance, path, named)


def test_a_hostile_name_is_escaped(hostile_page):
    html = hostile_page.read_text(encoding="utf-8")
    assert "<img" not in html
    assert HOSTILE in unescape(section_of(html))


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_a_hostile_name_stays_text_in_the_browser(hostile_page, open_page, width):
    opened = open_page(hostile_page, width)
    assert opened.page.evaluate("window.hacked") is None
    assert opened.complaints == []
    assert opened.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_section_is_drawn(page, open_page, width, scheme):
    opened = open_page(page, width, color_scheme=scheme)
    section = opened.page.locator("#training")
    assert section.is_visible()
    assert section.locator(".dots .dot").count() == 2 * len(TRANSFER_METRICS)
    label = section.locator(".dots[role=img]").get_attribute("aria-label")
    assert "rejects wrong ones: trained to answer" in label
    assert opened.complaints == []
    opened.page.evaluate("document.querySelectorAll('details').forEach((d) => (d.open = true))")
    assert opened.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


@pytest.mark.browser
def test_a_head_that_changed_can_be_chosen(page, open_page):
    opened = open_page(page).page
    opened.evaluate("document.querySelectorAll('details').forEach((d) => (d.open = true))")
    button = opened.locator("#training button[data-head]").last
    button.click()
    assert button.get_attribute("aria-pressed") == "true"


@pytest.mark.browser
def test_the_tables_stand_without_scripts(page, open_page):
    opened = open_page(page, java_script_enabled=False)
    assert opened.page.locator("#training table").first.is_visible()
    assert opened.page.locator("#training svg").first.is_visible()


# --- the judge out of its scheme ------------------------------------------------------------------


def asked_otherwise(dataset, others: float):
    """The study with right candidates 2 above wrong ones as usual, and by ``others`` else."""
    odds = np.zeros((dataset.sizes["example"], len(SCHEMES), 2))
    odds[:, :, 0] = others
    odds[:, list(SCHEMES).index("usual"), 0] = 2
    coords = {"scheme": list(SCHEMES), "pair": ["right", "wrong"]}
    return dataset.assign_coords(coords).assign(
        scheme_log_odds=(("example", "scheme", "pair"), odds)
    )


def test_a_judge_that_knows_its_form_only_is_shown_to_fall(runs, provenance):
    blind = [Run(run.name, asked_otherwise(run.dataset, 0.0), run.seed) for run in runs]
    found = content.Training.of(blind)
    table = transfer.section(found, provenance).schemes
    assert table.columns[1:] == tuple(content.run_label(name) for name in found.names)
    assert len(table.rows) == len(SCHEMES)
    usual, other = table.rows[0].cells[0], table.rows[1].cells[0]
    assert (usual.text, len(usual.more)) == ("1.00", 1)  # no difference from itself
    assert other.text == "0.50"
    assert other.more[1] == f"{DOWN}\u22120.50"
    assert "Asked in other ways" in render_report(blind[0].dataset, provenance, blind)


def test_without_other_schemes_nothing_is_shown(runs, provenance):
    found = content.Training.of(runs)
    assert transfer.section(found, provenance).schemes.rows == ()
    assert "Asked in other ways" not in render_report(runs[0].dataset, provenance, runs)
