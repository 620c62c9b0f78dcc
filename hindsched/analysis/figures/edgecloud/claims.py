"""The quantitative claims of the edge-cloud paper (IEEE JSAC 2022)."""

from __future__ import annotations

import pandas as pd

from hindsched.analysis.figures.claims import (
    Claim,
    Measure,
    Values,
    above,
    at_least,
    at_most,
    below,
)
from hindsched.analysis.figures.marks import Level, Mark
from hindsched.analysis.figures.measures import against, change, derived, spread, value

RIVALS = {"srtf": "SRTF", "tiresias-l": "Tiresias-L", "batchsche": "BatchSche"}
PREEMPTIVE = {"edgecloud": "A_online", "tiresias-l": "Tiresias-L", "srtf": "SRTF"}
NEARLY_ALL = 0.999
LITTLE = 1.15
"""Greatest over least along an axis of little influence: our choice."""
LARGEST_RATIO, CLOSE_TO_OPTIMAL = 1.7, 1.1
EDGE_ONLY = "A_online-E may not use the cloud, SRTF and Tiresias-L here may"
MAKESPAN = {"srtf": 0.76, "tiresias-l": 0.74}
MARKS: dict[str, tuple[Mark, ...]] = {
    "4": (Level(1.0),),
    "6": (Level(1.0),),
    "7": (Level(1.0), Level(0.7)),
    "8": (Level(1.0),),
    "12": (Level(LARGEST_RATIO),),
    "13": (Level(LARGEST_RATIO),),
}
TRACED = ("7", "8", "9", "10", "11")
"""Simulations whose arrivals the paper takes from a trace."""


def _lower(number: str, y: str, x: str, place: str, scheme: str, rival: str, words: str) -> Claim:
    """One scheme has less of a total than another, mean over an axis."""
    return Claim(
        f"edgecloud-{number}-{scheme}-{rival}",
        number,
        place,
        words,
        "-",
        f"{y.replace('_', ' ')} of {scheme} over that of {rival}, mean over {x}",
        against(scheme, rival, y, over=[x]),
        below(1),
        EDGE_ONLY if scheme == "edgecloud-edge-only" else "",
    )


def _relative(scheme: str, rival: str, x: str) -> Measure:
    """Total JCT of one scheme over another's, a row a value of the axis."""

    def make(frame: pd.DataFrame) -> pd.DataFrame:
        rows = against(scheme, rival, "total_jct", by=[x])(frame)
        return pd.DataFrame([{**dict(case), "relative": part} for case, part in rows.items()])

    return derived(make, change("relative", x))


def _reduction_grows(scheme: str, rival: str) -> Claim:
    return Claim(
        f"edgecloud-7-{scheme}-{rival}-grows",
        "7",
        "Section V-C, Figure 7",
        f"The reduction of JCT of {scheme} over {rival} grows with the number of jobs",
        "-",
        "their quotient with most jobs over that with fewest",
        _relative(scheme, rival, "jobs"),
        below(1),
        EDGE_ONLY if scheme == "edgecloud-edge-only" else "",
    )


def _rate_of(scheme: str, words: str, rule_is_above: bool) -> Claim:
    return Claim(
        f"edgecloud-8-{scheme}-{'rises' if rule_is_above else 'falls'}",
        "8",
        "Section V-C, Figure 8",
        f"With more edge servers the JCT rate of {words}",
        "-",
        "JCT rate (over SRTF's) with most servers over that with fewest",
        change("jct_rate", "servers", where={"scheme": scheme}),
        above(1) if rule_is_above else below(1),
    )


def _preemptions(number: str, x: str) -> list[Claim]:
    place = f"Section V-C, Figure {number}"
    return [
        _lower(
            number, "preemptions", x, place, "edgecloud", "edgecloud-edge-only",
            f"A_online preempts less than A_online-E, against {x}",
        ),
        _lower(
            number, "preemptions", x, place, "srtf", "edgecloud",
            f"A_online preempts more than SRTF, against {x}",
        ),
    ]  # fmt: skip


def _busiest(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.groupby("scheme", sort=False)["busy_share"].max().reset_index()


def _flow(gather: str) -> Measure:
    return value("flow_over_ilp_4", by=["epsilon"], gather=gather)


def _theorem_3(frame: pd.DataFrame) -> Values:
    """Greatest flow over ILP (4) in parts of 1 + 1 / epsilon."""
    fast = frame[frame["epsilon"] > 0]
    part = fast["flow_over_ilp_4"] / (1 + 1 / fast["epsilon"])
    return {(): float(part.max())}


def _theorem_3_total(frame: pd.DataFrame) -> Values:
    """Greatest total over LP (4)+ in parts of D_max (1 + 1 / epsilon)."""
    fast = frame[frame["epsilon"] > 0]
    constant = fast["most_chunks"] * (1 + 1 / fast["epsilon"])
    return {(): float((fast["jct_over_lp_4_plus"] / constant).max())}


def _ratio(number: str, x: str) -> list[Claim]:
    place = f"Section V-C, Figure {number}"
    return [
        Claim(
            f"edgecloud-{number}-low",
            number,
            place,
            f"The ratio to ILP (4) with zeta = 1 stays below 1.7, {x}",
            "1.7",
            f"greatest mean ratio along the {x}",
            derived(
                lambda frame: frame.groupby(["epsilon", x])["flow_over_ilp_4"].mean().reset_index(),
                _flow("max"),
            ),
            below(LARGEST_RATIO),
        ),
        Claim(
            f"edgecloud-{number}-little",
            number,
            place,
            f"The {x} have little influence on it",
            "-",
            f"greatest over least ratio along the {x}",
            spread("flow_over_ilp_4", x, by=["epsilon"]),
            at_most(LITTLE),
        ),
        Claim(
            f"edgecloud-{number}-epsilon",
            number,
            place,
            "The larger epsilon, the smaller the ratio",
            "-",
            "ratio at the largest epsilon over that at the smallest",
            change("flow_over_ilp_4", "epsilon"),
            below(1),
        ),
        Claim(
            f"edgecloud-{number}-optimal",
            number,
            place,
            "A_online is close to optimal at epsilon = 0.5",
            "about 1",
            "mean ratio at 0.5",
            value("flow_over_ilp_4", where={"epsilon": 0.5}),
            at_most(CLOSE_TO_OPTIMAL),
        ),
        Claim(
            f"edgecloud-{number}-theorem-3",
            number,
            "Theorem 3",
            "For ILP (4) A_online at speed 1 + epsilon is (1 + 1 / epsilon)-competitive",
            "1 + 1 / epsilon",
            "greatest ratio over 1 + 1 / epsilon",
            _theorem_3,
            at_most(1),
            "the denominator is the bound proven for ILP (4) with zeta = 1",
        ),
        Claim(
            f"edgecloud-{number}-theorem-3-total",
            number,
            "Theorem 3",
            "For MINLP (2) A_online at speed 1 + epsilon is D_max (1 + 1 / epsilon)-competitive",
            "D_max (1 + 1 / epsilon)",
            "greatest total JCT over the certified LP (4)+, over the constant",
            _theorem_3_total,
            at_most(1),
        ),
    ]


CLAIMS = [
    Claim(
        "edgecloud-3-accuracy",
        "3",
        "Section V-B, Figure 3",
        "All models trained under A_online converge",
        "-",
        "accuracy of trained models",
        None,
        at_least(0),
        "needs real training; scheduling does not enter it",
    ),
    *(
        _lower(
            "4",
            "total_jct",
            "jobs",
            "Section V-B, Figure 4",
            "edgecloud",
            rival,
            f"A_online outperforms {name} on the testbed, simulated here",
        )
        for rival, name in RIVALS.items()
    ),
    Claim(
        "edgecloud-5-grow",
        "5",
        "Section V-B, Figure 5",
        "Preemptions grow with the number of jobs",
        "-",
        "preemptions with most jobs over those with fewest",
        derived(
            lambda frame: frame[frame["scheme"].isin(PREEMPTIVE)],
            change("preemptions", "jobs", by=["scheme"]),
        ),
        above(1),
    ),
    *(
        _lower(
            "5",
            "preemptions",
            "jobs",
            "Section V-B, Figure 5",
            "edgecloud",
            rival,
            f"A_online's preemptions are relatively few: fewer than {RIVALS[rival]}'s",
        )
        for rival in ("tiresias-l", "srtf")
    ),
    *(
        _lower(
            "6",
            "communication_slots",
            "jobs",
            "Section V-B, Figure 6",
            "edgecloud",
            rival,
            f"A_online communicates less than {name}",
        )
        for rival, name in RIVALS.items()
    ),
    *(
        _lower(
            "7",
            "total_jct",
            "jobs",
            "Section V-C, Figure 7",
            scheme,
            rival,
            f"{scheme} outperforms {rival}",
        )
        for scheme, rival in (
            ("edgecloud", "batchsche"),
            ("edgecloud", "srtf"),
            ("edgecloud", "tiresias-l"),
            ("edgecloud", "edgecloud-edge-only"),
            ("edgecloud-edge-only", "srtf"),
            ("edgecloud-edge-only", "tiresias-l"),
        )
    ),
    Claim(
        "edgecloud-7-thirty",
        "7",
        "Abstract",
        "A_online reduces the average JCT by up to 30 % over the baselines",
        "0.7",
        "total JCT over the best of SRTF, Tiresias-L and BatchSche, least over jobs",
        against("edgecloud", tuple(RIVALS), "total_jct", over=["jobs"], best="min", gather="min"),
        at_most(0.7),
    ),
    Claim(
        "edgecloud-7-all-cloud",
        "7",
        "Section V-C, Figure 7",
        "Dispatching most jobs to the cloud is not a good choice",
        "-",
        "A_online's total JCT over that of all-cloud, which the paper leaves out",
        against("edgecloud", "all-cloud", "total_jct", over=["jobs"]),
        below(1),
    ),
    *(
        _reduction_grows(scheme, rival)
        for scheme, rival in (
            ("edgecloud", "srtf"),
            ("edgecloud", "tiresias-l"),
            ("edgecloud-edge-only", "srtf"),
            ("edgecloud-edge-only", "tiresias-l"),
            ("edgecloud", "edgecloud-edge-only"),
        )
    ),
    Claim(
        "edgecloud-8-best",
        "8",
        "Section V-C, Figure 8",
        "A_online and A_online-E are better than the others at every number of servers",
        "-",
        "total JCT over the best of the baselines of its category",
        lambda frame: {
            (("scheme", name),): number
            for name, rivals in (
                ("edgecloud", tuple(RIVALS)),
                ("edgecloud-edge-only", ("srtf", "tiresias-l")),
            )
            for number in against(
                name, rivals, "total_jct", over=["servers"], best="min", gather="max"
            )(frame).values()
        },
        below(1),
        EDGE_ONLY,
    ),
    _rate_of("edgecloud", "A_online rises", True),
    _rate_of("batchsche", "BatchSche rises", True),
    _rate_of("edgecloud-edge-only", "A_online-E falls", False),
    _rate_of("tiresias-l", "Tiresias-L falls", False),
    *_preemptions("9", "jobs"),
    *_preemptions("10", "servers"),
    *(
        Claim(
            f"edgecloud-11-full-{scheme}",
            "11",
            "Section V-C, Figure 11",
            f"The utilisation of {name} reaches 100 %",
            "100 %",
            "greatest busy share of the edge workers",
            derived(_busiest, value("busy_share", where={"scheme": scheme})),
            at_least(NEARLY_ALL),
        )
        for scheme, name in (("edgecloud", "A_online"), ("edgecloud-edge-only", "A_online-E"))
    ),
    *(
        Claim(
            f"edgecloud-11-under-{scheme}",
            "11",
            "Section V-C, Figure 11",
            f"{RIVALS[scheme]} under-utilises the edge",
            "-",
            "its greatest busy share over A_online-E's",
            derived(_busiest, against(scheme, "edgecloud-edge-only", "busy_share")),
            below(1),
        )
        for scheme in MAKESPAN
    ),
    *(
        Claim(
            f"edgecloud-11-makespan-{rival}",
            "11",
            "Section V-C, Figure 11",
            f"A_online's makespan is about {printed} times {RIVALS[rival]}'s",
            f"{printed}",
            f"makespan over {RIVALS[rival]}'s",
            against("edgecloud", rival, "makespan"),
            at_most(1.1 * printed),
            "reproduced up to eleven tenths of the printed factor",
        )
        for rival, printed in MAKESPAN.items()
    ),
    *_ratio("12", "jobs"),
    *_ratio("13", "servers"),
]
