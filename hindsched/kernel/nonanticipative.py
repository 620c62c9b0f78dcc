"""Certificates about who cannot see the future: kind ``nonanticipative``.

Scenarios are instances of one cluster that differ in their jobs. In slot t those with the same
ordered list of job records revealed by then cannot be told apart, so an online policy begins in
them the same jobs in the same windows (class ``run``), or decides alike on all of a job that
arrives (``commit``). Multipliers m on "job j runs in the window a..b" (oasis: on its workers in a
slot, or on completing in it) that add up to 0 over every such class change no policy's weighted sum
of values; without the classes every scenario is then an offline problem of its own with own terms;
best responses at prices, or in the leaves of a tree, bound it. What is proven:

    sum_s w_s value_s(policy)  <=  sum_s [ w_s worth of the prices + sum_j best response(j) ]

(maximising; minimising >=), for every policy, randomised ones too. Where scenarios come with
schedules of values v_s, the bound over sum_s w_s v_s bounds the share of hindsight (the factor of
it, minimising) that any online algorithm can promise: v_s is on the safe side of the optimum.

Replacing a mode by one that no other beats (see `windows`) follows from what begins, so policies
may be taken to use those modes alone. Jobs run in one piece, and completion times count.
"""

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from . import reading
from .exact import Data, Interval, total
from .problem import ScenarioProblem
from .reading import require

KEYS = {"format", "family", "formulation", "kind", "policies", "sense", "bound", "claim",
        "scenarios"}  # fmt: skip
PART = {"instance", "instance_sha256", "weight", "own", "kind", "prices", "schedule"}
Multipliers = dict[
    str, dict[tuple[Any, ...], Any]
]  # multipliers by job and window, and what they are on


def prove(instances: Sequence[Any], data: Data) -> Interval:
    """What a certificate proves of the instances, in the order of its scenarios."""
    data = reading.exact_numbers(data)
    require(set(data) == KEYS, f"keys must be {sorted(KEYS)}")
    require(data["kind"] == "nonanticipative", "kind: must be nonanticipative")
    require(data["policies"] in ("run", "commit"), "policies: must be run or commit")
    require(data["claim"] in ("expected", "guarantee"), "claim: must be expected or guarantee")
    scenarios, first, family = data["scenarios"], instances[0].data, instances[0].family
    has_them = issubclass(family, ScenarioProblem) and data["formulation"] in family.nonanticipative
    require(has_them, "formulation: has no such certificates")
    require(len(scenarios) == len(instances), "scenarios: must be one an instance")
    for n, (instance, row) in enumerate(zip(instances, scenarios, strict=True)):
        here = f"scenarios[{n}]"
        require(set(row) == PART, f"{here}: keys must be {sorted(PART)}")
        require(instance.data["family"] == data["family"], f"{here}: is of another family")
        require(
            _cluster_fields(instance.data) == _cluster_fields(first), f"{here}: another cluster"
        )
        require(row["instance"] == instance.data["name"], f"{here}: another instance")
        require(row["kind"] in ("lagrangian", "tree"), f"{here}.kind: is unknown")
        reading.number(row["weight"], f"{here}.weight")
    multipliers = [
        _read_multipliers(row["own"], f"scenarios[{n}].own") for n, row in enumerate(scenarios)
    ]
    _check_cancel(instances, multipliers, data["policies"])
    require(data["sense"] == family.sense, f"sense: must be {family.sense}")
    parts, worth = list[Interval](), list[Interval]()
    for instance, row, terms in zip(instances, scenarios, multipliers, strict=True):
        problem = instance.problem(data["formulation"])
        assert isinstance(problem, ScenarioProblem)
        part = {"kind": row["kind"], "prices": row["prices"], "sense": family.sense,
                "policies": data["policies"]}  # fmt: skip
        parts.append(problem.bound_with(part, row["weight"], terms))
        if data["claim"] == "guarantee":
            verdict = problem.check(row["schedule"])
            require(verdict.feasible, f"{row['instance']}: its schedule is infeasible")
            worth.append(verdict.value.times(row["weight"]))
    scale = total(worth)
    if data["claim"] == "expected":
        weighed = Fraction(sum(row["weight"] for row in scenarios))
        scale = Interval(weighed, weighed)
    near = scale.low > 0 and abs(scale.low - 1) <= Fraction(1, 10**6)
    require(near, "weights: times the schedules' values, or alone, they must have the sum 1")
    proven = total(parts)
    ends = [end / by for end in (proven.low, proven.high) for by in (scale.low, scale.high)]
    proven = Interval(min(ends), max(ends))
    reading.check_stated(data["bound"], proven, family.sense, "bound")
    return proven


def futures_in_order(data: Data, files: Sequence[tuple[Any, str]]) -> list[Any]:
    """The futures' files, each with its hash, in the order of the certificate's scenarios."""
    by_hash, rows = {sha256: future for future, sha256 in files}, data["scenarios"]
    require(len(rows) == len(files), "scenarios: must be one an instance file")
    for n, row in enumerate(rows):
        require(row["instance_sha256"] in by_hash, f"scenarios[{n}]: is of another instance")
    hashes = [row["instance_sha256"] for row in rows]
    require(set(hashes) == set(by_hash), "scenarios: must be one an instance file")
    return [by_hash[sha256] for sha256 in hashes]


def _cluster_fields(data: Data) -> Any:
    return {key: data[key] for key in data if key not in ("jobs", "name", "provenance")}


def _read_multipliers(rows: Any, here: str) -> Multipliers:
    multipliers: Multipliers = defaultdict(dict)
    for row in rows:
        known = {"job", "from", "to", "price", "of"}
        require({*row, "of"} == known, f"{here}: keys must be {sorted(known)}")
        window = *reading.span(row, here), *([row["of"]] if "of" in row else [])
        reading.check_limit("cells", window[1], here)
        require(type(row["price"]) in (int, Fraction), f"{here}: price must be a number")
        require(window not in multipliers[row["job"]], f"{here}: a window stands twice")
        multipliers[row["job"]][window] = row["price"]
    return multipliers


def _check_cancel(
    instances: Sequence[Any], multipliers: Sequence[Multipliers], policies: str
) -> None:
    """Over every class, multipliers on one window of one job add up to 0."""
    sums: dict[Any, Any] = defaultdict(int)
    known: dict[Any, int] = {}
    for instance, terms in zip(instances, multipliers, strict=True):
        data, reveal_slot = instance.data, instance.family.reveal_slot
        records = [known.setdefault(_frozen(job), len(known)) for job in data["jobs"]]
        slots = [reveal_slot(data, job) for job in data["jobs"]]
        places = {job["name"]: at for at, job in enumerate(data["jobs"])}
        for name, windows in terms.items():
            require(name in places, f"own: {name} is no job of {data['name']}")
            arrival, record = slots[places[name]], records[places[name]]
            for (first, last, *of), price in windows.items():
                require(first >= arrival, f"own: {name} has not arrived in slot {first}")
                slot = first if policies == "run" else arrival
                reading.spend(len(slots))
                history = (job for at, job in zip(slots, records, strict=True) if at <= slot)
                sums[tuple(history), record, first, last, *of] += price
    require(not any(sums.values()), "own: multipliers must add up to 0 over every class")


def _frozen(value: Any) -> Any:
    """A record to compare: the number 1/2 is not the word "1/2"."""
    if isinstance(value, dict):
        return dict, tuple((key, _frozen(value[key])) for key in sorted(value))
    if isinstance(value, list):
        return list, tuple(map(_frozen, value))
    return isinstance(value, bool), value
