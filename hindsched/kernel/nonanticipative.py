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

from . import games, reading
from .exact import Data, Interval, point, total
from .problem import ScenarioProblem
from .reading import require

KEYS = {"format", "family", "formulation", "kind", "policies", "sense", "bound", "claim",
        "scenarios"}  # fmt: skip
PART = {"instance", "instance_sha256", "weight", "schedule"}
KINDS = {"nonanticipative": {"own", "kind", "prices"}, "policy-graph": set()}
"""What a scenario has besides."""
Multipliers = dict[str, dict[tuple[Any, ...], Any]]  # by job and window, and what they are on


def prove(instances: Sequence[Any], data: Data) -> Interval:
    """What a certificate proves of the instances, in the order of its scenarios."""
    data = reading.exact_numbers(data)
    kind, claim = str(data.get("kind")), data.get("claim")
    require(kind in KINDS, f"kind: must be one of {', '.join(KINDS)}")
    require(set(data) == KEYS, f"keys must be {sorted(KEYS)}")
    require(data["policies"] in ("run", "commit"), "policies: must be run or commit")
    pure = claim == "deterministic" and kind == "policy-graph"
    require(claim in ("expected", "guarantee") or pure, "claim: must be expected or guarantee")
    scenarios, first, family = data["scenarios"], instances[0].data, instances[0].family
    has_them = issubclass(family, ScenarioProblem) and data["formulation"] in family.nonanticipative
    require(has_them, "formulation: has no such certificates")
    require(len(scenarios) == len(instances), "scenarios: must be one an instance")
    part = PART | KINDS[kind]
    for n, (instance, row) in enumerate(zip(instances, scenarios, strict=True)):
        here = f"scenarios[{n}]"
        require(set(row) == part, f"{here}: keys must be {sorted(part)}")
        require(instance.data["family"] == data["family"], f"{here}: is of another family")
        require(
            _cluster_fields(instance.data) == _cluster_fields(first), f"{here}: another cluster"
        )
        require(row["instance"] == instance.data["name"], f"{here}: another instance")
        reading.number(row["weight"], f"{here}.weight")
        require(not pure or row["weight"] == 1, f"{here}.weight: must be 1")
    require(data["sense"] == family.sense, f"sense: must be {family.sense}")
    worth = list[Interval]()
    for instance, row in zip(instances, scenarios, strict=True):
        require(
            (row["schedule"] is None) == (claim == "expected"), "schedule: belongs to a promise"
        )
        if claim != "expected":
            stated, here = row["schedule"], f"{row['instance']}: its schedule"
            same = all(stated[key] == row[key] for key in ("instance", "instance_sha256"))
            words = (family.formulations[each["formulation"]] for each in (stated, data))
            require(same and len(set(words)) == 1, f"{here} is of another problem")
            verdict = instance.problem(data["formulation"]).check(stated)
            require(verdict.feasible, f"{here} is infeasible")
            for way in ("max", "min"):
                reading.check_stated(stated["objective"], verdict.value, way, f"{here}: objective")
            worth.append(verdict.value)
    if kind == "policy-graph":
        proven = games.bound_of_game(instances, data, worth, family.sense == "max")
    else:
        proven = total(_parts(instances, data))
    if not pure:
        weights = [row["weight"] for row in scenarios]
        parts = [v.times(w) for v, w in zip(worth, weights, strict=True)] if worth else []
        scale = total(parts) if parts else point(Fraction(sum(weights)))
        near = scale.low > 0 and abs(scale.low - 1) <= Fraction(1, 10**6)
        require(near, "weights: times the schedules' values, or alone, they must have the sum 1")
        ends = [end / by for end in (proven.low, proven.high) for by in (scale.low, scale.high)]
        proven = Interval(min(ends), max(ends))
    reading.check_stated(data["bound"], proven, family.sense, "bound")
    return proven


def _parts(instances: Sequence[Any], data: Data) -> list[Interval]:
    """Bounds of the scenarios, each with its weight and own terms, which cancel."""
    rows, bounds = data["scenarios"], list[Interval]()
    multipliers = [
        _read_multipliers(row["own"], f"scenarios[{n}].own") for n, row in enumerate(rows)
    ]
    _check_cancel(instances, multipliers, data["policies"])
    for instance, row, terms in zip(instances, rows, multipliers, strict=True):
        require(row["kind"] in ("lagrangian", "tree"), f"{row['instance']}.kind: is unknown")
        part = {"kind": row["kind"], "prices": row["prices"], "sense": data["sense"],
                "policies": data["policies"]}  # fmt: skip
        problem = instance.problem(data["formulation"])
        bounds.append(problem.bound_with(part, row["weight"], terms))
    return bounds


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
    return games.frozen({key: data[key] for key in data.keys() - {"jobs", "name", "provenance"}})


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
        records = [known.setdefault(games.frozen(job), len(known)) for job in data["jobs"]]
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
