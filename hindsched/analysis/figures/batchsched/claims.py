"""The quantitative claims of batchsched's paper on its evaluation."""

from __future__ import annotations

import pandas as pd

from hindsched.analysis.figures.claims import Claim, Values, above, at_most, below
from hindsched.analysis.figures.marks import Level, Mark
from hindsched.analysis.figures.measures import Ours, against, change, derived, value

RIVALS = {"fifo": "FIFO", "drf": "DRF", "antman": "AntMan", "tiresias": "Tiresias"}
OURS: Ours = {
    "as printed": "batchsched",
    "work-conserving": "batchsched-adaptive",
    "work-conserving with left shift": "batchsched-adaptive, left shift",
}
BATCHES, CAPACITY, ROUND = "the batches", "capacity_fraction", "the round"
ROUNDS = {
    "index order": "A_maxweight",
    "exact placement": "A_maxweight, exact",
    "exact, by density": "A_maxweight, exact, by density",
}
SMALLER = 0.7
"""At least 30 % better."""
MARKS: dict[str, tuple[Mark, ...]] = {"7": (Level(120.0),)}


def _better(number: str, key: str, x: str, where: str) -> list[Claim]:
    """A_online against each of the four rivals, at every contention."""
    return [
        Claim(
            f"batchsched-{number}-{rival}",
            number,
            where,
            f"A_online is at least 30 % better than {name}, {key}",
            "0.7",
            f"total weighted completion time over {name}'s, mean over {x}",
            against(
                OURS, rival, "objective", column="algorithm", by=[CAPACITY], over=[x],
                variant=BATCHES,
            ),
            at_most(SMALLER),
        )
        for rival, name in RIVALS.items()
    ]  # fmt: skip


def _best(number: str, x: str, where: str, words: str) -> Claim:
    return Claim(
        f"batchsched-{number}-best",
        number,
        where,
        words,
        "-",
        f"total weighted completion time over the best rival's, mean over {x}",
        against(
            OURS, tuple(RIVALS), "objective", column="algorithm", by=[CAPACITY], over=[x],
            best="min", variant=BATCHES,
        ),
        below(1),
    )  # fmt: skip


def _fifo_by_jobs(number: str) -> Claim:
    """The same against FIFO, number of jobs by number of jobs: the lead shrinks with them."""
    return Claim(
        f"batchsched-{number}-fifo-by-jobs",
        number,
        "Section 7.1",
        "... whatever the number of jobs (against FIFO, at the usual contention of 0.35)",
        "0.7",
        "total weighted completion time over FIFO's",
        derived(
            lambda frame: frame[frame[CAPACITY] == 0.35],
            against(
                OURS, "fifo", "objective", column="algorithm", by=["jobs"], variant=BATCHES
            ),
        ),
        at_most(SMALLER),
    )  # fmt: skip


def _grows_with_servers(number: str) -> Claim:
    return Claim(
        f"batchsched-{number}-servers",
        number,
        "Section 7.1",
        "The total grows with the number of servers at the same total capacity",
        "-",
        "A_online's total with most servers over that with fewest",
        change("objective", "servers", where={"algorithm": "batchsched"}, by=[CAPACITY]),
        above(1),
    )


def _forced_and_free(frame: pd.DataFrame) -> pd.DataFrame:
    """The total with each worker type forced, and with free choice, as schemes."""
    kind = frame["fixed_worker_type"].astype(str)
    short = frame["architecture"].map({"parameter_server": "PS", "ring_allreduce": "RAR"})
    return frame.assign(kind=kind, framework=short.fillna(frame["architecture"]))


def _free_choice(frame: pd.DataFrame) -> Values:
    ready = _forced_and_free(frame[frame["algorithm"] == "batchsched"])
    forced = [kind for kind in dict.fromkeys(ready["kind"]) if kind != "free choice"]
    return against(
        "free choice", forced, "objective", column="kind", by=["framework", CAPACITY], best="min"
    )(ready)


CLAIMS = [
    *_better("2", "parameter servers", "jobs", "Abstract; Section 7.1, Figure 2"),
    _fifo_by_jobs("2"),
    Claim(
        "batchsched-2-preemptive-worst",
        "2",
        "Section 7.1",
        "AntMan's and Tiresias' totals are much larger than the other algorithms'",
        "-",
        "the smaller of the two over the larger of FIFO's, DRF's and A_online's, mean over jobs",
        derived(
            lambda frame: (
                frame.groupby([CAPACITY, "jobs", "algorithm"], sort=False)["objective"]
                .mean()
                .unstack()
                .assign(
                    two=lambda wide: wide[["antman", "tiresias"]].min(axis=1),
                    rest=lambda wide: wide[["fifo", "drf", "batchsched"]].max(axis=1),
                )
                .assign(lead=lambda wide: wide["two"] / wide["rest"])
                .reset_index()
            ),
            value("lead", by=[CAPACITY]),
        ),
        above(1),
    ),
    *_better("3", "against servers", "servers", "Section 7.1, Figure 3"),
    _grows_with_servers("3"),
    Claim(
        "batchsched-4-f",
        "4",
        "Section 7.1, Figure 4",
        "A larger F gives a larger total",
        "-",
        "total with 10^8 F over that with F",
        change("objective", "density_scale", by=["algorithm"]),
        above(1),
    ),
    _best("5", "jobs", "Section 7.1, Figure 5", "A_online performs best, Ring-AllReduce"),
    _fifo_by_jobs("5"),
    _best("6", "servers", "Section 7.1, Figure 6", "A_online performs best, against servers"),
    _grows_with_servers("6"),
    Claim(
        "batchsched-7-grows",
        "7",
        "Section 7.1, Figure 7",
        "The running time grows with the number of jobs",
        "-",
        "seconds of A_online with most jobs over those with fewest",
        change("seconds", "jobs", where={"algorithm": "batchsched"}, by=["architecture"]),
        above(1),
    ),
    Claim(
        "batchsched-7-low",
        "7",
        "Section 7.1, Figure 7",
        "... but stays below two minutes (Matlab, Core i3)",
        "120 s",
        "most seconds of a whole run of A_online",
        value("seconds", where={"algorithm": "batchsched"}, gather="max"),
        below(120),
    ),
    Claim(
        "batchsched-8-weight",
        "8",
        "Section 7.2, Figure 8",
        "A_maxweight accepts much more weight than Jain et al.",
        "-",
        "weight accepted over GreedyRTL's, mean over the numbers of jobs",
        against(
            ROUNDS,
            "Jain et al. (GreedyRTL)",
            "weight",
            column="algorithm",
            over=["jobs"],
            variant=ROUND,
        ),
        above(1),
    ),
    Claim(
        "batchsched-9-types",
        "9",
        "Section 7.1, Figure 9",
        "Free choice of the worker type gives the smallest total",
        "-",
        "A_online's total with free choice over the best with a type forced",
        _free_choice,
        at_most(1),
        "the paper's four EC2 instances; that a P3's GPU is six times a P2's is our choice",
    ),
    Claim(
        "batchsched-10-workers",
        "10",
        "Section 7.1, Figure 10",
        "The total falls as more workers are deployed for each job",
        "-",
        "A_online's total with most workers over that with fewest",
        change("objective", "fixed_workers", where={"algorithm": "batchsched"}, by=[CAPACITY]),
        below(1),
    ),
    Claim(
        "batchsched-11-f",
        "11",
        "Section 7.2, Figure 11",
        "A smaller F accepts more weight",
        "-",
        "weight with 10^8 F over that with F",
        change("weight", "density_scale", by=["algorithm"]),
        below(1),
    ),
    Claim(
        "batchsched-12-servers",
        "12",
        "Section 7.2, Figure 12",
        "The weight falls with the number of servers",
        "-",
        "weight with most servers over that with fewest",
        change("weight", "servers", where={"algorithm": "A_maxweight"}, by=["jobs"]),
        below(1),
    ),
    Claim(
        "batchsched-12-jobs",
        "12",
        "Section 7.2, Figure 12",
        "The weight grows with the number of jobs",
        "-",
        "weight with most jobs over that with fewest",
        change("weight", "jobs", where={"algorithm": "A_maxweight"}, by=["servers"]),
        above(1),
    ),
    Claim(
        "batchsched-theorem-5",
        "theorem-5",
        "Theorem 5",
        "A_online is 4 alpha-competitive",
        "4 alpha",
        "greatest total over the bound on OPT, over 4 alpha",
        derived(
            lambda frame: frame.assign(part=frame["ratio_upper"].astype(float) / frame["theorem"]),
            value("part", where={"algorithm": "batchsched"}, gather="max"),
        ),
        at_most(1),
        "small instances, where its assumptions do not hold",
    ),
]
