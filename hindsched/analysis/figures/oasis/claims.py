"""The quantitative claims of OASiS (INFOCOM 2018) on its evaluation and its theorem."""

from __future__ import annotations

import pandas as pd

from hindsched.analysis.figures.claims import Claim, Measure, Values, above, at_most
from hindsched.analysis.figures.marks import Level, Mark
from hindsched.analysis.figures.measures import against, change, derived, quotient, spread, value

RIVALS = ("fifo", "drf", "rrh", "dorm")
OURS = {"as printed": "oasis", "with a floor of 0.1": "oasis, L-floor 0.1"}
LOWER = "the lower bound L"
BEST_OF = "utility over that of the best of FIFO, DRF, RRH and Dorm"
TREND = 1.1
"""Greatest over least value along an axis without a trend: our choice."""
MARKS: dict[str, tuple[Mark, ...]] = {"5": (Level(1.1), Level(1.5))}


def _lead(frame: pd.DataFrame) -> pd.DataFrame:
    """Utility of each of ours over the best rival's, a row a number of jobs."""
    rows = against(OURS, RIVALS, "utility", by=["jobs"], variant=LOWER)(frame)
    return pd.DataFrame([{**dict(case), "lead": lead} for case, lead in rows.items()])


def _distance(kind: str, statistic: str) -> Measure:
    """How much farther from the target (or more varied) than the best rival, in slots."""

    def measure(frame: pd.DataFrame) -> Values:
        own = frame[frame["class"] == kind].astype({"late": float}).groupby("scheme")["late"]
        numbers = own.mean().abs() if statistic == "mean" else own.var()
        rival = numbers.reindex(RIVALS).min()
        return {
            ((LOWER, word),): float(numbers.get(name, float("nan")) - rival)
            for word, name in OURS.items()
        }

    return measure


def _estimates(frame: pd.DataFrame) -> pd.DataFrame:
    """Underestimates (50, 75 %) and overestimates (125, 150 %) as two kinds of row."""
    kept = frame[frame["estimate_percent"] != 100]
    side = kept["estimate_percent"].lt(100).map({True: "under", False: "over"})
    floor = kept["lower_floor"].map({0.0: "as printed", 0.1: "with a floor of 0.1"})
    return kept.assign(side=side).assign(**{LOWER: floor})


def _timeliness(number: str, where: str) -> list[Claim]:
    return [
        Claim(
            f"oasis-{number}-{statistic}-{kind.removeprefix('time-')}",
            number,
            where,
            f"OASiS' completion minus target has {words}, {kind} jobs",
            "-",
            f"{quantity} of OASiS' minus that of the best rival's (slots), finished jobs only",
            _distance(kind, statistic),
            at_most(0),
        )
        for kind in ("time-sensitive", "time-critical")
        for statistic, words, quantity in (
            ("mean", "the mean closest to zero", "absolute mean"),
            ("variance", "the smallest variance", "variance"),
        )
    ]


CLAIMS = [
    Claim(
        "oasis-3-best",
        "3",
        "Section V-A, total utility",
        "OASiS performs the best",
        "-",
        BEST_OF,
        against(OURS, RIVALS, "utility", by=["jobs"], variant=LOWER),
        above(1),
    ),
    *(
        Claim(
            f"oasis-3-{rival}",
            "3",
            "Section V-A, total utility",
            f"OASiS earns more than {rival.upper() if rival != 'dorm' else 'Dorm'}",
            "-",
            "utility over the rival's, mean over the numbers of jobs",
            against(OURS, rival, "utility", over=["jobs"], variant=LOWER),
            above(1),
        )
        for rival in RIVALS
    ),
    Claim(
        "oasis-3-lead-grows",
        "3",
        "Section V-A, total utility",
        "... especially when the number of jobs in the fixed timespan is larger",
        "-",
        "lead over the best rival with most jobs over that with fewest",
        derived(_lead, change("lead", "jobs", by=[LOWER])),
        above(1),
    ),
    *_timeliness("4", "Section V-A, timeliness"),
    Claim(
        "oasis-5-ratio",
        "5",
        "Section V-A, performance ratio",
        "The offline optimum over OASiS is around 1.1 to 1.5",
        "1.1-1.5",
        "upper end of OPT / OASiS, mean over servers and priorities",
        value("ratio_upper", by=["max_duration", "lower_floor"]),
        at_most(1.5),
        "less than 1.1 is better still; max_duration 2 is the paper's, 4 and 10 add contention",
    ),
    Claim(
        "oasis-5-servers",
        "5",
        "Section V-A, performance ratio",
        "No clear trend of the ratio with more resources",
        "-",
        "greatest over least mean ratio along the number of servers",
        spread("ratio_upper", "servers", by=["max_duration", "lower_floor"]),
        at_most(TREND),
    ),
    Claim(
        "oasis-5-priorities",
        "5",
        "Section V-A, performance ratio",
        "No clear trend of the ratio with larger U / L",
        "-",
        "greatest over least mean ratio along the ranges of priorities",
        spread("ratio_upper", "priority", where={"max_duration": 2}),
        at_most(TREND),
    ),
    Claim(
        "oasis-theorem-4",
        "5",
        "Theorem 4",
        "OPT is at most 2 alpha times OASiS' utility",
        "2 alpha",
        "greatest upper end of the ratio over 2 alpha",
        derived(
            lambda frame: frame.assign(part=frame["ratio_upper"].astype(float) / frame["theorem"]),
            value("part", gather="max"),
        ),
        at_most(1),
    ),
    Claim(
        "oasis-6-under",
        "6",
        "Section V-A, inaccurate estimates",
        "Underestimating U / L earns more than overestimating it when resources are scarce",
        "-",
        "utility at 50 and 75 % over that at 125 and 150 %",
        quotient(
            derived(_estimates, value("utility", where={"side": "under"}, by=[LOWER, "jobs"])),
            derived(_estimates, value("utility", where={"side": "over"}, by=[LOWER, "jobs"])),
        ),
        above(1),
    ),
    Claim(
        "oasis-8-best",
        "8",
        "Section V-B, testbed",
        "OASiS' total utility is the largest on the testbed, simulated here",
        "-",
        BEST_OF,
        against(OURS, RIVALS, "utility", variant=LOWER),
        above(1),
    ),
    *_timeliness("9", "Section V-B, testbed"),
]
