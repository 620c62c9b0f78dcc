"""Experiments at the papers' scale that decide their claims, and how a paper is read in each."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

from growth import GROWTH
from printed import differences
from properties import PROPERTIES
from theorems import THEOREMS
from verdicts import claims_of

from hindsched.analysis.figures.base import FULL_SEEDS, Figure, figures

FAMILIES = {
    "oasis": "OASiS, INFOCOM 2018",
    "batchsched": "Zhang et al., MobiHoc 2020 and journal version",
    "astraea": "Astraea, IEEE TC 2022",
    "edgecloud": "Wang et al., IEEE JSAC 2022",
    "mlbroker": "mlBroker, IEEE TPDS",
}
TRACE = "philly/philly.csv.gz"
"""Within the folder of the variable HINDSCHED_TRACES."""
INSTANCES = 200
"""On which each theorem is tried."""
LOOKS, LOOKS_AT_TRACE = (FULL_SEEDS, 10, 20, 50, 100), (FULL_SEEDS, 9)
"""Numbers of seeds after which an interval may decide; ten windows of Philly's trace overlap."""
READINGS = {
    ("batchsched", ""): "alpha by (6), batches end early",
    ("batchsched", "alpha-4"): "alpha = 4",
    ("batchsched", "alpha-1"): "alpha = 1",
    ("astraea", ""): "times as printed",
    ("astraea", "tenth"): "times x 0.1",
    ("astraea", "durations"): "Philly's durations",
}
"""Of what may be read in two ways, by family and the plan's word; the headline's is empty."""


def experiments(family: str) -> dict[str, Figure]:
    """Figures of a paper by number, and what this folder adds to them."""
    added = [table.get(family) for table in (THEOREMS, GROWTH)]
    own = {figure.number: figure for figure in added if figure is not None}
    return figures(family) | PROPERTIES.get(family, {}) | own


@dataclass(frozen=True)
class Plan:
    """An experiment at the paper's scale, by its first figure; long axes in part, with their ends.

    `minutes` of a processor are expected; `reading` is a word of `READINGS`.
    """

    family: str
    figure: str
    minutes: float
    settings: dict[str, Any] = field(default_factory=dict)
    schemes: tuple[str, ...] | None = None
    traced: bool = False
    reading: str = ""
    seeds: int = FULL_SEEDS

    @property
    def name(self) -> str:
        parts = self.family, self.figure, "philly" if self.traced else "", self.reading
        return "-".join(filter(None, parts))

    @property
    def looks(self) -> tuple[int, ...]:
        """Numbers of seeds after which its intervals may decide."""
        return LOOKS_AT_TRACE if self.traced else LOOKS

    @property
    def reading_words(self) -> str:
        """How the paper is read, where it can be read in two ways."""
        same = [p for p in PLAN if (p.family, p.figure) == (self.family, self.figure)]
        several = len({p.reading for p in same}) > 1
        headline = self.traced and not self.reading
        return READINGS[self.family, self.reading] if several and not headline else ""

    def differences(self, number: str) -> dict[str, tuple[str, str]]:
        """What of a figure's settings is not as printed, with what is printed."""
        return differences(self.family, number, self.settings, traced=self.traced)

    @property
    def figures(self) -> list[str]:
        """Numbers of all figures that show the same table."""
        known = experiments(self.family)
        same = [n for n, item in known.items() if item.run is known[self.figure].run]
        return [number for number in same if claims_of(self.family, number)]

    @property
    def command(self) -> str:
        more = "" if self.seeds == FULL_SEEDS else f" --seeds {self.seeds}"
        if self.figure not in figures(self.family):
            return f"python benchmarks/claims.py --again {self.name}{more}"
        parts = [f"hindsched figure {self.family} {self.figure}"]
        for name, values in self.settings.items():
            parts.append(f"--set {name}={json.dumps(values, separators=(',', ':'))}")
        parts += [f'--schemes "{",".join(self.schemes)}"'] if self.schemes else []
        parts += [f"--from-trace $HINDSCHED_TRACES/{TRACE}"] if self.traced else []
        return " ".join(parts) + more


WITHOUT_DORM = (
    "oasis", "oasis, L-floor 0.1", "fifo", "drf", "rrh", "fifo widest", "rrh widest",
)  # fmt: skip
AS_THE_PAPER_SETS_THEM = (
    "batchsched", "fifo", "drf", "antman", "tiresias", "antman restoring", "tiresias restoring",
)  # fmt: skip
AT_THE_EDGE = (
    "srtf drawn edge", "srtf drawn cloud", "srtf half edge", "srtf half cloud", "srtf ideal edge",
    "srtf ideal cloud", "tiresias-l drawn edge", "tiresias-l drawn cloud", "edgecloud",
    "edgecloud-edge-only", "batchsche", "batchsche alpha-4", "batchsche per-batch", "all-cloud",
)  # fmt: skip
ON_THE_TESTBED = (*AT_THE_EDGE[:6], "tiresias-l drawn edge", "tiresias-l drawn cloud",
    "tiresias-l half edge", "tiresias-l half cloud", "tiresias-l ideal edge",
    "tiresias-l ideal cloud", "edgecloud", "batchsche", "batchsche alpha-4", "batchsche per-batch",
    "edgecloud-escape", "all-cloud",
)  # fmt: skip
IN_LARGE = (*ON_THE_TESTBED[:-5], "edgecloud-edge-only", "batchsche", "edgecloud-marginal",
    "edgecloud-escape", "all-cloud",
)  # fmt: skip
FOR_TENANTS = (
    "astraea, lambda 1", "astraea, lambda 2", "batchsche", "batchsche alpha-4",
    "batchsche per-batch", "gandiva-fair", "hived",
)  # fmt: skip
AT_THEIR_STRONGEST = (
    "astraea, lambda 1", "astraea, lambda 2", "batchsche", "gandiva-fair", "hived",
    "gandiva-fair widest", "hived widest",
)  # fmt: skip
VARIANTS = ("batchsched", "batchsched-exact", "batchsched-adaptive")
IN_A_ROUND = ("A_maxweight", "A_maxweight, exact, by density", "Jain et al. (GreedyRTL)")
IN_RANGE: dict[str, Any] = {"capacity_fraction": [0.2]}
BELOW_AND_IN_RANGE: dict[str, Any] = {"capacity_fraction": [0.05, 0.2]}
AS_IN_TABLE_II: dict[str, Any] = {"chunks": None, "minibatch_scale": 1, "worker_types": 8}
IN_BATCHES = (
    Plan(
        "batchsched",
        "2",
        4,
        {"jobs": [50, 200], "capacity_fraction": [0.05, 0.2, 0.35]},
        AS_THE_PAPER_SETS_THEM,
    ),
    Plan("batchsched", "3", 10, {"servers": [50, 200], **IN_RANGE}, AS_THE_PAPER_SETS_THEM),
    Plan(
        "batchsched",
        "5",
        2,
        {"jobs": [50, 200], "capacity_fraction": [0.2, 0.35]},
        AS_THE_PAPER_SETS_THEM,
    ),
    Plan("batchsched", "6", 10, {"servers": [50, 200], **IN_RANGE}, AS_THE_PAPER_SETS_THEM),
    Plan("batchsched", "4", 2.2, {}, VARIANTS),
    Plan("batchsched", "7", 2.3, {}, VARIANTS),
    Plan("batchsched", "9", 2, BELOW_AND_IN_RANGE, ("batchsched",)),
    Plan(
        "batchsched", "10", 3, {"fixed_workers": [1, 5, 30], **BELOW_AND_IN_RANGE}, ("batchsched",)
    ),
)
"""A_online with alpha = 4."""
BY_TIMES = (
    Plan("astraea", "4a", 0.4, {"jobs": [40, 160]}, FOR_TENANTS),
    Plan("astraea", "4b", 0.4, {"servers": [20, 140]}, FOR_TENANTS),
    Plan("astraea", "4c", 1.7, {"jobs": [40, 160]}),
    Plan("astraea", "4d", 1.1, {"servers": [20, 140]}),
    *(Plan("astraea", number, 0.2, {}, FOR_TENANTS) for number in ("7", "8")),
    Plan("astraea", "13", 0.6),
    *(Plan("astraea", number, 0.2) for number in ("9", "10", "11", "12", "table-2")),
)
ON_PHILLY = tuple(plan for plan in BY_TIMES if plan.figure != "table-2")
"""Figures whose jobs come from a trace in the paper: Table 2 varies the tenants."""
TIMES_LONGER = 6
"""A run with the printed times takes about so much longer than with a tenth of them."""
UNTIL_ALL_END = {"horizon": 6000}
"""With the printed times 13 to 28 of 100 jobs end after the preset's horizon, 1,500 slots."""


def with_printed_times(plan: Plan) -> Plan:
    """A plan with the printed times, which runs until jobs have ended."""
    settings = {**plan.settings, **UNTIL_ALL_END}
    return replace(plan, settings=settings, minutes=TIMES_LONGER * plan.minutes)


def on_philly(plan: Plan) -> Plan:
    """A plan on Philly's arrivals, clusters and GPUs, its work and servers as the paper says."""
    servers = {} if plan.figure == "10" else {"servers": 100}  # Figure 10 varies them
    settings = {**servers, **plan.settings, **UNTIL_ALL_END}
    schemes = FOR_TENANTS if plan.figure in ("4c", "4d") else None
    return replace(plan, settings=settings, schemes=schemes, traced=True)


def with_durations(plan: Plan) -> Plan:
    """A plan on Philly's jobs as long as they are there, on all of its servers."""
    settings = {"minibatch_scale": None}
    return Plan("astraea", plan.figure, 0.5, settings, traced=True, reading="durations")


def read_as(plan: Plan, algorithm: str, reading: str) -> Plan:
    """A plan with another reading of A_online."""
    schemes = (algorithm if name == "batchsched" else name for name in plan.schemes or ())
    return replace(plan, schemes=tuple(schemes), reading=reading)


def with_alpha_1(plan: Plan) -> Plan:
    """A plan with alpha = 1, in the paper's range of capacity: below it runs take many minutes."""
    settings = dict(plan.settings)
    if "capacity_fraction" in settings:
        settings["capacity_fraction"] = [f for f in settings["capacity_fraction"] if f >= 0.2]
    return replace(read_as(plan, "batchsched alpha-1", "alpha-1"), settings=settings)


def shortened(plan: Plan) -> Plan:
    """A plan with a tenth of the printed times."""
    settings = {**plan.settings, "minibatch_scale": 0.1}
    schemes = AT_THEIR_STRONGEST if plan.figure in ("4c", "4d") else plan.schemes
    return replace(plan, settings=settings, schemes=schemes, reading="tenth")


PLAN = (
    Plan("oasis", "3", 110, {"jobs": [100, 400]}, (*WITHOUT_DORM, "dorm")),
    Plan("oasis", "4", 9, {}, (*WITHOUT_DORM, "dorm")),
    Plan("oasis", "5", 40, {"servers": [10, 60, 100]}),
    Plan("oasis", "6", 3, {"jobs": [100, 400]}),
    Plan("oasis", "8", 0.1),
    Plan("oasis", "9", 0.1),
    *(read_as(plan, "batchsched-terminating", "") for plan in IN_BATCHES),
    *(read_as(plan, "batchsched", "alpha-4") for plan in IN_BATCHES),
    *map(with_alpha_1, IN_BATCHES),
    Plan("batchsched", "8", 3, {"jobs": [50, 200]}, IN_A_ROUND),
    Plan("batchsched", "11", 4, {}, ("A_maxweight",)),
    Plan("batchsched", "12", 4, {"jobs": [50, 200], "servers": [25, 150]}, ("A_maxweight",)),
    Plan("batchsched", "theorem-5", 0.7, {}, VARIANTS),
    *map(with_printed_times, BY_TIMES),
    *map(shortened, BY_TIMES),
    Plan("astraea", "5", 4, {"jobs": [5, 15], "servers": [5, 25, 45]}),
    Plan("astraea", "6", 4, {"jobs": [5, 15], "servers": [5, 25, 45]}, FOR_TENANTS),
    *(Plan("astraea", number, 0.2) for number in ("P1", "P2", "P3", "P4")),
    *map(on_philly, ON_PHILLY),
    *map(with_durations, ON_PHILLY),
    Plan("edgecloud", "4", 0.3, {}, ON_THE_TESTBED),
    Plan("edgecloud", "7", 5, {"jobs": [100, 300]}, AT_THE_EDGE),
    Plan("edgecloud", "8", 14, {"servers": [60, 140]}, AT_THE_EDGE),
    Plan("edgecloud", "11", 5, {}, IN_LARGE),
    Plan("edgecloud", "12", 1, AS_IN_TABLE_II),
    Plan("edgecloud", "13", 1, AS_IN_TABLE_II),
    Plan("edgecloud", "7", 8, {"jobs": [100, 300]}, AT_THE_EDGE, traced=True),
    Plan("edgecloud", "8", 8, {"servers": [60, 140]}, AT_THE_EDGE, traced=True),
    Plan("edgecloud", "11", 8, {}, IN_LARGE, traced=True),
    Plan("mlbroker", "5", 12, {"datacenters": [3, 15], "epsilon": [0.001, 0.1, 10.0]}),
    Plan("mlbroker", "6", 3, {"capacity_gb": [16, 66], "data_gb": [100, 700]}),
    Plan("mlbroker", "7", 4, {"datacenters": [5, 15, 20]}),
    Plan("mlbroker", "8", 7, {"data_gb": [100, 400, 700]}),
    Plan("mlbroker", "9", 7, {"horizon": [50, 100]}, ("mlbroker",)),
    Plan("mlbroker", "10", 5, {"jobs": [29, 174]}, ("mlbroker",)),
    Plan("mlbroker", "15", 0.3),
    *(Plan(family, "theorems", 4, seeds=INSTANCES) for family in FAMILIES),
    *(Plan(family, "time", 2) for family in GROWTH),
)
