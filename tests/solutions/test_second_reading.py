"""Solutions against two other readers: the exact kernel's rules, and tables in plain Python."""

from __future__ import annotations

import copy
import json
import random
import re
from functools import cache
from typing import Any

import pytest

import hindsched as hs
from hindsched.errors import InputError
from tests.kernel.agreement import KERNELS, exact
from tests.solutions.second_reading import capacity, facts, use

ALGORITHMS = {
    "astraea": ("astraea", "shortest-remaining", "sia"),
    "batchsched": ("fifo", "shortest-remaining", "optimus"),
    "edgecloud": ("srtf", "edgecloud", "all-cloud"),
    "gang": ("fifo", "srtf", "las"),
    "mlbroker": ("mlbroker",),
    "oasis": ("oasis", "fifo", "optimus"),
}
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "astraea": [{}, {"worker_types": 2, "ps_types": 2}],
    "batchsched": [{"worker_types": 2, "ps_types": 2}, {"architecture": "ring-allreduce"}],
    "edgecloud": [
        {},
        {"worker_types": 2, "ps_types": 2, "storage_gb": 12.0, "chunk_gb": [5.0, 9.0],
         "cloud_workers": 2},
    ],
    "gang": [
        {},
        {"gpus": 8, "servers": 3, "placement": "consolidated", "widths": [1, 7], "users": 2},
    ],
    "mlbroker": [{}, {"jobs": 6}],
    "oasis": [{}, {"jobs": 8}],
}  # fmt: skip
SAME = {
    "astraea": {
        "(3c)": "(3c), (3d)",
        "(3d)": "(3c), (3d)",
        "(3f)": "(3f), (3h)",
        "(3h)": "(3f), (3h)",
    },
    "batchsched": {"(2n)": "(2a)", "(15b)": "(2h)"},  # two rows at once: twice, or changed
}
"""Equations that the kernel names together."""
IMPLIED = {
    "astraea": {"(3a)", "(3b)"},  # by (3c) and (3d) of all servers
    "oasis": {"(3)", "(6)", "(7)"},  # said of open slots or of all
}
ONE = {
    "astraea": {"(3f), (3h)"},
    "edgecloud": {"(2c)", "(2d)", "no migration"},
    "batchsched": {"(2a)"},
}
"""Equations of which kernel and package count different things, such as slots and how often."""
WORK = {
    "astraea": "(3k)", "batchsched": "(2f)", "edgecloud": "(2b)", "gang": "(1)",
    "mlbroker": "(8f)", "oasis": "(2)",
}  # fmt: skip


def changed(rows: Any, draw: random.Random, names: list[str]) -> Any:
    """A copy in which a few rows are dropped, doubled, cut, given away or altered."""
    rows = copy.deepcopy(rows)
    for _ in range(draw.choice([1, 1, 2, 4])):
        mine = rows[draw.choice(list(rows))]
        if not mine:
            continue
        row, what = draw.choice(mine), draw.random()
        if what < 0.1:
            mine.remove(row)
        elif what < 0.2:
            mine.append(copy.deepcopy(row))
        elif what < 0.3:
            rows[draw.choice(list(rows))] = copy.deepcopy(mine)
        elif what < 0.45 and row["to"] > row["from"]:
            rest = copy.deepcopy(row)
            row["to"] = (row["from"] + row["to"]) // 2
            rest["from"] = row["to"] + draw.choice([1, 1, 2])
            if rest["from"] <= rest["to"]:
                mine.append(rest)
        else:
            _alter(row, draw, names)
    return rows


def _alter(row: dict[str, Any], draw: random.Random, names: list[str]) -> None:
    key = draw.choice(list(row))
    value = row[key]
    if isinstance(value, int):
        row[key] = max(1, value + draw.choice([-3, -1, 1, 2]))
    elif isinstance(value, str):
        row[key] = draw.choice(names)
    elif value:
        name = draw.choice(list(value))
        if draw.random() < 0.7:
            value[name] += draw.choice([-1, 1, 2])
        else:
            value[draw.choice(names)] = value.pop(name)


STRETCHES = {"(4)", "(5)"}
"""Capacities of oasis, whose slots the kernel names by stretches and the package one by one."""


def overbooked(broken: list[tuple[str, str]]) -> set[tuple[str, str]]:
    """Places and slots of `STRETCHES` that are named."""
    return {
        (place, slot)
        for equation, where in broken
        if equation in STRETCHES
        for place in re.findall(r"\b[a-z]\d+\b", where)
        for slot in re.findall(r"slot \d+", where)
    }


@cache
def schedules(family: str) -> list[tuple[Any, Any, str]]:
    """Instances, good and changed rows of their jobs, formulations."""
    found = []
    for seed, settings in enumerate(2 * VARIANTS[family]):
        instance = hs.generate(family, seed=seed, **{"jobs": 4, **settings})
        data = instance.to_dict()
        if family == "gang" and settings:
            instance = hs.read(slower(data))
        places = data.get("servers") or data.get("datacenters") or data.get("worker_servers") or []
        names = [place["name"] for place in places] + ["cloud"]
        for algorithm in ALGORITHMS[family]:
            rows = hs.simulate(instance, algorithm).solution.assignments()
            for formulation in instance.formulations:
                for trial in range(1 + 12 // len(instance.formulations)):
                    draw = random.Random(f"{seed} {formulation} {algorithm} {trial}")
                    tried = changed(rows, draw, names) if trial and rows else rows
                    found.append((instance, tried, formulation))
    return found


def slower(data: dict[str, Any]) -> dict[str, Any]:
    """An instance of gang whose slots last 2.5 s."""
    data["slot_seconds"] = 2.5
    for job in data["jobs"]:
        for key in {"submit", "duration", "deadline"} & set(job):
            job[key] *= 2.5
    return data


def worst(
    family: str, idle: list[str], broken: list[tuple[str, str, Any]]
) -> dict[str, tuple[float, set[str]]]:
    """By equation, the greatest excess and the jobs and servers that are named.

    What is wrong with a job of batchsched that does not run has two numbers: it is left out.
    """
    found: dict[str, tuple[float, set[str]]] = {}
    for equation, where, amount in broken:
        is_idle = family == "batchsched" and any(re.search(rf"\b{job}\b", where) for job in idle)
        if is_idle or equation in IMPLIED.get(family, ()):
            continue
        name = SAME.get(family, {}).get(equation, equation)
        size = 1.0 if name in ONE.get(family, ()) else float(amount)
        before, who = found.get(name, (0.0, set()))
        named = re.findall(r"\bj\d+\b", where) or re.findall(r"\b[a-z]\d+\b", where)
        if family == "mlbroker" or (family == "oasis" and name not in STRETCHES):
            named += re.findall(r"slot \d+", where)  # the others name stretches by their first slot
        found[name] = (max(before, size), who | set(named))
    return found


@pytest.mark.parametrize("family", ALGORITHMS)
def test_the_kernel_finds_the_same_broken_rules(family):
    seen, feasible = set[str](), 0
    for instance, rows, formulation in schedules(family):
        try:
            solution = hs.build_solution(instance, rows, formulation)
        except InputError:
            continue
        checked = KERNELS[family].check(exact(instance.to_dict()), exact(solution.to_dict()))
        own = solution.violations()
        idle = [job.name for job in instance.jobs if job.name not in solution.assignments()]
        fast = worst(family, idle, [(v.constraint, v.where, v.amount) for v in own])
        slow = worst(family, idle, [(v.equation, v.where, v.amount) for v in checked.violations])
        assert {name: who for name, (_, who) in fast.items()} == {
            name: who for name, (_, who) in slow.items()
        }
        if family == "oasis":
            first = overbooked([(v.equation, v.where) for v in checked.violations])
            assert first <= overbooked([(v.constraint, v.where) for v in own])
        for name, (amount, _) in fast.items():
            assert amount == pytest.approx(slow[name][0], rel=1e-9)
        assert (not own) == (not checked.violations)
        if not own:
            assert solution.objective() == pytest.approx(float(checked.objective.low), rel=1e-9)
        seen |= set(fast)
        feasible += not own
    assert len(seen) >= (1 if family == "mlbroker" else 4)
    assert feasible > 5


@pytest.mark.parametrize("family", ALGORITHMS)
def test_the_order_of_rows_in_a_file_says_nothing(family):
    for number, (instance, rows, formulation) in enumerate(schedules(family)):
        try:
            solution = hs.build_solution(instance, rows, formulation)
        except InputError:
            continue
        draw = random.Random(number)
        names = draw.sample(list(rows), len(rows))
        mixed = {name: draw.sample(rows[name], len(rows[name])) for name in names}
        again = hs.build_solution(instance, mixed, formulation)
        assert set(again.violations()) == set(solution.violations())
        if solution.is_feasible():
            assert again.to_dict() == solution.to_dict()
            assert again.job_rows() == solution.job_rows()


@pytest.mark.parametrize("family", ["astraea", "batchsched", "mlbroker", "oasis"])
def test_a_count_of_zero_is_no_count(family):
    for instance, rows, formulation in schedules(family)[::13]:
        data = instance.to_dict()
        places = data.get("servers") or data.get("datacenters") or data["worker_servers"]
        padded = copy.deepcopy(rows)
        for row in (row for own in padded.values() for row in own):
            row["workers"] = {place["name"]: 0 for place in places} | row["workers"]
        try:
            solution = hs.build_solution(instance, rows, formulation)
        except InputError:
            continue
        assert hs.build_solution(instance, padded, formulation).to_dict() == solution.to_dict()


@pytest.mark.parametrize("family", ALGORITHMS)
def test_tables_say_what_the_rows_do(family):
    looked = 0
    for instance, rows, formulation in schedules(family):
        try:
            solution = hs.build_solution(instance, rows, formulation)
        except InputError:
            continue
        looked += 1
        data, table = json.loads(json.dumps(instance.to_dict())), solution.job_rows()
        rows = solution.assignments()
        for job, row in zip(facts(data, rows), table, strict=True):
            assert {key: row[key] for key in job} == pytest.approx(job)
        undone = {v.where for v in solution.violations() if v.constraint == WORK[family]}
        for row in table:
            own = rows.get(row["job"], ())
            last = max((one["to"] for one in own if "ps" not in one or "workers" in one), default=0)
            missing = not own or any(re.search(rf"\b{row['job']}\b", where) for where in undone)
            assert (
                row["completion"] == (None if missing else last) == solution.completion(row["job"])
            )
            if family not in ("mlbroker", "oasis"):  # where a job that does not end has a value too
                assert (row["value"] is None) == missing
        table = solution.usage_rows()
        keys = [key for key in ("slot", "role", "server", "resource") if table and key in table[0]]
        found = {tuple(row[key] for key in keys): row["used"] for row in table}
        assert found == pytest.approx(dict(use(data, rows)))
        assert len(found) == len(table)
        places = set(solution.places()) | {(row["server"], row["resource"]) for row in table}
        assert len(places) >= len(set(solution.places())) == len(solution.places())
        for row in table:
            assert row["capacity"] == pytest.approx(capacity(data, row))
            known = (row["server"], row["resource"]) in solution.places()
            in_cloud = row["server"] == data.get("cloud", {}).get("name")
            assert known or in_cloud or not solution.is_feasible()
        for row in (row for own in rows.values() for row in own):
            held = row.get("workers") or row.get("servers") or {}
            count = sum(held.values()) or row.get("gpus", 0) or ("chunk" in row)
            assert solution.run_of(row) == (row["from"], row["to"], count)
        if solution.is_feasible() and not formulation.endswith(("makespan", "deadlines")):
            values = sum(row["value"] or 0.0 for row in solution.job_rows())
            assert values == pytest.approx(solution.objective(), rel=1e-9)
    assert looked > 20


def test_incomes_of_astraeas_tenants_add_up():
    for instance, rows, formulation in schedules("astraea"):
        try:
            solution = hs.build_solution(instance, rows, formulation)
        except InputError:
            continue
        paid, gained, income = solution.payments(), solution.gains(), solution.incomes()
        earned = dict.fromkeys(income, 0.0)
        for row in solution.job_rows():
            earned[row["tenant"]] += row["value"] or 0.0
        for tenant, amount in income.items():
            own = earned[tenant] + float(gained[tenant] - paid[tenant])
            assert float(amount) == pytest.approx(own)
