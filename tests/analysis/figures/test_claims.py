"""Claims: how values become verdicts, and that the page shows what is stored."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from hindsched.analysis.figures.base import figures
from hindsched.analysis.figures.claims import (
    CaseResult,
    Claim,
    Rule,
    claims,
    condition_of,
    judge,
    measured,
    of_data,
    to_data,
)
from hindsched.analysis.figures.measures import against, change, measure, share, spread, value
from tests.scripts import script as load

ROOT = Path(__file__).parents[3]
FAMILIES = ("oasis", "batchsched", "astraea", "edgecloud", "mlbroker")


def above(value):
    return Rule(low=value, strict=True)


def claim(measure, rule):
    return Claim("oasis-x", "3", "Figure 3", "words", "1.5", "quantity", measure, rule)


def table():
    """Two seeds, two loads: ours is 2 and 4 times the better rival at load 1, half of it at 2."""
    rows = []
    for seed, factor in ((0, 2.0), (1, 4.0)):
        for load_, scale in ((1, factor), (2, 0.5)):
            for scheme, number in (("ours", 3.0 * scale), ("a", 3.0), ("b", 1.0)):
                rows.append({"seed": seed, "load": load_, "scheme": scheme, "y": number})
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("rule", "inside", "outside"),
    [
        (above(1), 1.01, 1.0),
        (Rule(high=1, strict=True), 0.99, 1.0),
        (Rule(low=1), 1.0, 0.99),
        (Rule(1, 2), 2.0, 2.01),
        (Rule(low=0), math.inf, math.nan),
    ],
)
def test_rules(rule, inside, outside):
    assert rule.holds(inside)
    assert not rule.holds(outside)


def test_a_quantity_is_computed_seed_by_seed_and_case_by_case():
    results = measured(
        claim(
            {"of": "against", "ours": "ours", "rivals": ["a", "b"], "y": "y", "by": ["load"]},
            above(1),
        ),
        table(),
    )
    assert [(item.case, item.values) for item in results] == [
        ((("load", 1),), (2.0, 4.0)),
        ((("load", 2),), (0.5, 0.5)),
    ]


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (above(0), "reproduced"),
        (above(1), "reproduced if load is 1"),
        (above(9), "not reproduced"),
    ],
)
def test_verdicts(rule, words):
    asked = claim({"of": "against", "ours": "ours", "rivals": "a", "y": "y", "by": ["load"]}, rule)
    assert str(judge(asked, measured(asked, table()))) == words


def test_a_verdict_is_sure_only_where_the_interval_decides():
    wide, narrow = CaseResult((), (0.5, 1.9, 1.0)), CaseResult((), (1.4, 1.5, 1.6))
    asked = claim(None, above(1))
    assert not judge(asked, [wide]).is_sure
    assert judge(asked, [narrow]).is_sure
    assert not judge(asked, [CaseResult((), (1.5,))]).is_sure  # one seed has no interval
    around = claim(None, Rule(0.9, 1.1))  # mean and both ends fail, on either side of the rule
    assert not judge(around, [CaseResult((), (0.3, 1.2, 2.1))]).is_sure


def test_measures_by_hand():
    frame = table().query("seed == 0")
    assert change(frame, "y", "load", where={"scheme": "ours"}) == {(): 0.25}
    assert spread(frame, "y", "load", where={"scheme": "ours"}) == {(): 4.0}
    assert value(frame, "y", where={"scheme": "ours"}, gather="max") == {(): 6.0}
    assert share(frame, "y", "gt", 1, by=["load"]) == {
        (("load", 1),): pytest.approx(2 / 3),
        (("load", 2),): pytest.approx(2 / 3),
    }
    parts = [{"of": "value", "y": "y", "where": {"scheme": name}} for name in ("ours", "b")]
    twice = {"of": "quotient", "numerator": parts[0], "denominator": parts[1]}
    assert measure(twice, frame) == {(): 3.75}
    assert against(frame, "ours", ("a", "b"), "y", over=["load"], best="min", gather="min") == {
        (): 1.5
    }
    assert against(frame, "ours", None, "y", by=["load"], minus=True)[("load", 1),] == 3.0
    step = {"of": "value", "table": [["extreme", "load", "max"]], "y": "y", "gather": "max"}
    assert measure(step, frame) == {(): 3.0}


def test_conditions_are_as_short_as_they_can_be():
    cases = [(("x", x), ("y", y)) for x in "ab" for y in "cde"]
    assert condition_of([case for case in cases if case[1][1] != "d"], cases) == "y is c or e"
    assert condition_of(cases[:1], cases) == "x is a, y is c"
    ragged = [case for index, case in enumerate(cases) if index != 4]
    assert condition_of(ragged, cases) == "chosen well: in 5 of 6 cases"


def test_results_survive_their_file():
    results = [CaseResult((("load", 1),), (1.5, math.nan, math.inf))]
    (again,) = of_data(to_data(results))
    assert again.case == results[0].case
    assert again.values[0] == 1.5
    assert math.isnan(again.values[1])
    assert again.values[2] == math.inf


@pytest.mark.parametrize("family", FAMILIES)
def test_claims_are_whole(family):
    """Unique keys of the family; the figure exists, but for one that needs real training."""
    found = claims(family)
    assert len({item.key for item in found}) == len(found)
    for item in found:
        assert item.family == family
        assert item.measure is None or item.figure in figures(family)
        assert item.words
        assert item.quantity
        assert isinstance(item.rule, Rule)


def test_every_figure_of_a_paper_has_a_claim():
    for family in FAMILIES:
        decided = {item.figure for item in claims(family)}
        assert set(figures(family)) - decided <= {"ablation"}


@pytest.fixture(scope="module")
def pages():
    return load("claims_page"), load("claims")


def test_the_page_shows_what_is_stored(pages):
    page, _ = pages
    assert page.PAGE.read_text() == page.page(), "python benchmarks/claims.py --page"


def test_the_plan_measures_every_claim(pages):
    _, script = pages
    script.check_plan()


def test_stored_results_are_of_their_experiments(pages):
    """What is called full is full; a command says what was run; values are one a seed."""
    page, script = pages
    plans = {plan.name: plan for plan in script.PLAN}
    for name, record in page.records().items():
        full = record["seeds"] >= 5 and not record["settings"] and not record["quick"]
        assert record["full_scale"] == full, name
        assert f"--seeds {record['seeds']}" in record["command"]
        assert list(plans[name].figures) == record["figures"]
        expected = {
            item.key for item in claims(record["family"]) if item.figure in record["figures"]
        }
        assert set(record["claims"]) == expected, name
        for cases in record["claims"].values():
            assert all(len(case["values"]) == record["seeds"] for case in cases)


def test_what_is_less_than_full_says_how_long_the_full_scale_takes(pages):
    page, script = pages
    found = page.records()
    assert set(found) == {plan.name for plan in script.PLAN}
    needs = {name: page._need(record) for name, record in found.items()}
    assert all(
        need.startswith(("this", "about", "at least", "more than")) for need in needs.values()
    )


@pytest.mark.parametrize(
    ("key", "holds"),
    [
        ("astraea-batch-sharing-incentive", False),
        ("astraea-theorem-5", False),
        ("astraea-theorem-4", False),
        ("edgecloud-6-edgecloud-tiresias-l", False),
        ("edgecloud-7-all-cloud", False),
        ("mlbroker-15-central", None),
        *((f"batchsched-2-{rival}", False) for rival in ("fifo", "drf", "antman", "tiresias")),
    ],
)
def test_words_of_the_family_pages_agree_with_what_is_stored(pages, key, holds):
    """What the pages say in words: False for never, None for some of our algorithms only."""
    page, _ = pages
    asked = next(item for item in claims(key.split("-")[0]) if item.key == key)
    (record,) = (
        item for item in page.records().values() if key in item["claims"] and not item["trace"]
    )
    word = judge(asked, of_data(record["claims"][key])).word
    assert word == {False: "not reproduced", None: "reproduced if"}[holds]


def test_nothing_queues_in_batchsched_at_the_usual_contention(pages):
    """Its page says so: all four rivals have the same total there."""
    page, _ = pages
    found = page.records()["batchsched-2"]["claims"]
    rivals = [found[f"batchsched-2-{name}"] for name in ("fifo", "drf", "antman", "tiresias")]
    assert all(cases == rivals[0] for cases in rivals)
