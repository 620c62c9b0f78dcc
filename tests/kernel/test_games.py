"""Games of a few futures: values against all policies by brute force, certificates, forgeries."""

from __future__ import annotations

import copy
import functools
import json
import random
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import hindsched as hs
from hindsched.analysis.adversary.folder import verify_adversary
from hindsched.analysis.foresight.folder import verify_foresight
from hindsched.analysis.foresight.play import schedule
from hindsched.analysis.foresight.states import StateGame
from hindsched.instances.base import Instance
from hindsched.instances.io import parse_instance
from hindsched.kernel import MALFORMED, RefusedFile
from hindsched.kernel.games import Game, fronts
from hindsched.kernel.nonanticipative import prove
from tests.brute_force import policies as brute
from tests.mutations.engine import mutate, places

GAMES = 200
SLOTS = {"format": "hindsched/1", "slot_seconds": 1}


def gang(draw: random.Random, jobs: list[list[int]], room: int) -> list[Instance]:
    """Futures of jobs (arrival, length, width, weight) on a pool."""
    records = [
        {"name": f"j{n}", "submit": a - 1, "duration": p, "gpus": min(g, room), "weight": w}
        for n, (a, p, g, w) in enumerate(jobs)
    ]
    return _parsed(draw, records, {"family": "gang", "gpus": room, "horizon": 9})


def batchsched(draw: random.Random, jobs: list[list[int]], room: int) -> list[Instance]:
    """The same on servers of one worker each, in batchsched."""
    servers = [{"name": f"s{n}", "capacity": {"gpu": 1, "bw": 100}} for n in range(room)]
    cluster = {
        "family": "batchsched", "horizon": 9, "architecture": "ring-allreduce",
        "resources": ["gpu", "bw"], "bandwidth_resource": "bw", "servers": servers,
        "worker_types": [{"name": "w", "demand": {"gpu": 1, "bw": 1}}],
    }  # fmt: skip
    records = [
        {"name": f"j{n}", "arrival": a, "weight": w, "epochs": 1, "chunks": 1, "minibatches": p,
         "minibatch_slots": [1], "reduce_slots": 0, "gradient_mb": 0}
        for n, (a, p, _, w) in enumerate(jobs)
    ]  # fmt: skip
    return _parsed(draw, records, cluster)


def oasis(draw: random.Random, jobs: list[list[int]], room: int) -> list[Instance]:
    """Elastic jobs with so many workers, in four slots."""

    def server(name: str) -> dict[str, Any]:
        return {"name": name, "capacity": {"gpu": room, "bw": 100}}

    cluster = {
        "family": "oasis", "horizon": 4, "resources": ["gpu", "bw"], "bandwidth_resource": "bw",
        "worker_servers": [server("w")], "ps_servers": [{**server("p"),
                                                         "capacity": {"gpu": 9, "bw": 1000}}],
    }  # fmt: skip
    records = [
        {"name": f"j{n}", "arrival": min(a, 4), "epochs": 1, "chunks": g, "minibatches": 1,
         "minibatch_slots": p / g, "gradient_mb": 0, "worker": {"gpu": 1, "bw": 1},
         "ps": {"gpu": 0, "bw": 100},
         "utility": {"kind": "linear", "slope": -1, "intercept": 3 * w}}
        for n, (a, p, g, w) in enumerate(jobs)
    ]  # fmt: skip
    return _parsed(draw, records, cluster)


def _parsed(draw: random.Random, records: list[Any], cluster: dict[str, Any]) -> list[Instance]:
    sets = [sorted(draw.sample(range(len(records)), draw.randint(1, len(records))))
            for _ in range(3)]  # fmt: skip
    return [
        parse_instance({**SLOTS, **cluster, "name": f"f{n}", "jobs": [records[k] for k in own]})
        for n, own in enumerate(dict.fromkeys(map(tuple, [[0], *sets])))
    ]


BUILDERS = {
    "gang": (gang, "non-preemptive", "run"),
    "batchsched": (batchsched, "modes", "run"),
    "oasis": (oasis, "standard", "commit"),
}


def drawn(family: str, seed: int) -> tuple[list[Instance], list[list[int]], int]:
    """A tiny random game."""
    draw = random.Random(f"{family}-{seed}")
    jobs = [[draw.randint(1, 3), draw.randint(1, 3), draw.randint(1, 2), draw.randint(1, 3)]
            for _ in range(draw.randint(2, 4))]  # fmt: skip
    jobs[0][0] = 1
    if draw.random() < 0.4:
        jobs[-1] = list(jobs[-2])
    room = draw.randint(1, 2)
    return BUILDERS[family][0](draw, jobs, room), jobs, room


def reached(family: str, instances: list[Instance], jobs: Any, room: int) -> list[Any]:
    """Vectors of all policies by brute force."""
    names = {f"j{n}": job for n, job in enumerate(jobs)}
    told = [[(min(names[j.name][0], 4) if family == "oasis" else names[j.name][0], j.name)
             for j in i.jobs] for i in instances]  # fmt: skip
    if family == "oasis":
        work = {name: p for name, (_, p, _, _) in names.items()}
        most = {name: g for name, (_, _, g, _) in names.items()}

        def utility(job: str, end: int) -> float:
            return 3 * names[job][3] - (end - min(names[job][0], 4))

        step = brute.elastic(work, most, room, utility, 4, "commit")
        return brute.values(told, step, 4, True)
    wide = family == "gang"
    ways = {name: [(p, (min(g, room) if wide else 1,))] for name, (_, p, g, _) in names.items()}
    last = 3 + sum(p for _, p, _, _ in jobs)

    def cost(job: str, end: int) -> float:
        a, _, _, w = names[job]
        return w * (end + 1 - a if wide else end + 1)

    step = brute.windows(ways, (room,), cost, last, "run", False)
    return brute.values(told, step, last, False)


@pytest.mark.parametrize("family", BUILDERS)
def test_values_are_those_of_all_policies(family: str) -> None:
    _, formulation, policies = BUILDERS[family]
    for seed in range(GAMES // len(BUILDERS) + 1):
        instances, jobs, room = drawn(family, seed)
        up = family == "oasis"
        vectors = reached(family, instances, jobs, room)
        game = Game([instance.exact for instance in instances], formulation, policies)
        states = StateGame(game, up)
        known = fronts(game, states.graph, [10**60] * len(instances), up)
        assert {tuple(v / game.rules.scale for v in own) for own in known} == set(vectors)
        pick = max if up else min
        optima = [pick(own[s] for own in vectors) for s in range(len(instances))]
        assert [states.alone(s)[0] for s in range(len(instances))] == pytest.approx(optima)
        if min(optima) <= 0:
            continue
        table = np.array(vectors) / optima
        inner, outer = (min, max) if up else (max, min)
        assert states.deterministic(optima) == pytest.approx(outer(map(inner, table)))
        found = states.randomised(optima)
        assert found.value == pytest.approx(mixed(table, up), rel=1e-7)
        promised = [v / o for v, o in zip(states.expected(found.moves), optima, strict=True)]
        assert inner(promised) == pytest.approx(found.value, rel=1e-7)


def mixed(table: Any, up: bool) -> float:
    """The best worst share of a mixture of policies."""
    sign = 1 if up else -1
    size = len(table)
    rows = np.hstack([-sign * table.T, np.full((table.shape[1], 1), sign)])
    found = linprog(
        [0] * size + [-sign], rows, np.zeros(len(rows)), [[1] * size + [0]], [1],
        bounds=[(0, None)] * size + [(None, None)],
    )  # fmt: skip
    return float(found.x[-1])


def ambush(length: int, burst: int, slots: int) -> list[Instance]:
    """A long job, and unit jobs that come after some slot, or never."""

    def job(name: str, at: int, seconds: int) -> dict[str, Any]:
        return {"name": name, "submit": at, "duration": seconds, "gpus": 1}

    base = job("base", 0, length)
    jobs = [[base, *(job(f"b{s}-{n}", s + 1, 1) for n in range(burst))] for s in range(slots)]
    data = {**SLOTS, "family": "gang", "gpus": 1, "horizon": 50}
    return [parse_instance({**data, "name": f"f{n}", "jobs": own})
            for n, own in enumerate([*jobs, [base]])]  # fmt: skip


def chain(size: int, growth: float) -> list[Instance]:
    """Jobs of which one fits, each worth so many times the one before; future k ends after k."""

    def server(name: str) -> dict[str, Any]:
        return {"name": name, "capacity": {"gpu": 1, "bw": 1}}

    unit = {"gpu": 1, "bw": 1}
    jobs = [
        {"name": f"j{k}", "arrival": k + 1, "epochs": 1, "chunks": 1, "minibatches": 1,
         "minibatch_slots": size - k, "gradient_mb": 0, "worker": unit, "ps": unit,
         "utility": {"kind": "linear", "slope": 0, "intercept": growth**k}}
        for k in range(size)
    ]  # fmt: skip
    data = {**SLOTS, "family": "oasis", "horizon": size, "resources": ["gpu", "bw"],
            "bandwidth_resource": "bw", "worker_servers": [server("w")],
            "ps_servers": [server("p")]}  # fmt: skip
    return [parse_instance({**data, "name": f"f{k}", "jobs": jobs[: k + 1]}) for k in range(size)]


@functools.cache
def adversary_of(name: str) -> hs.Adversary:
    if name == "gang":
        return hs.Adversary.of(ambush(6, 6, 6), "run")
    return hs.Adversary.of(chain(6, 2), "commit")


@pytest.mark.parametrize(
    ("length", "burst", "slots", "any_policy", "pure"),
    [(6, 6, 6, 1.2839539, 1.6388889), (10, 10, 8, 1.3453150, 1.8)],
)
def test_ambushes(length: int, burst: int, slots: int, any_policy: float, pure: float) -> None:
    found = hs.Adversary.of(ambush(length, burst, slots), "run")
    assert found.ratio == pytest.approx(any_policy, abs=1e-7)
    assert found.ratio_deterministic == pytest.approx(pure, abs=1e-7)


@pytest.mark.parametrize(("size", "growth"), [(4, 2), (8, 2), (24, 10 ** (1 / 23))])
def test_chains_have_the_value_of_the_formula(size: int, growth: float) -> None:
    found = hs.Adversary.of(chain(size, growth), "commit")
    assert found.ratio == pytest.approx(1 + (size - 1) * (1 - 1 / growth), rel=1e-9)
    assert found.ratio_deterministic == pytest.approx(growth ** (size - 1), rel=1e-9)


@pytest.mark.parametrize("name", ["gang", "oasis"])
def test_the_best_policy_is_an_online_algorithm(name: str) -> None:
    found = adversary_of(name)
    for s, instance in enumerate(found.futures.instances):
        own = schedule(found.states, instance, s, found.states.alone(s)[1].__getitem__,
                       found.formulation)  # fmt: skip
        assert own.objective() == pytest.approx(found.optima[s])
    s = len(found.futures) - 2
    instance = found.futures.instances[s]
    runs = [hs.simulate(instance, found.policy, seed=seed, estimates={}) for seed in range(300)]
    values = [run.objective for run in runs]
    assert not any(run.violations for run in runs)
    off = abs(np.mean(values) - found.expected[s])
    assert off <= 4 * np.std(values) / len(values) ** 0.5 + 1e-9


@pytest.mark.parametrize("claim", ["guarantee", "deterministic"])
@pytest.mark.parametrize("name", ["gang", "oasis"])
def test_forged_and_mutated_certificates_prove_nothing_false(name: str, claim: str) -> None:
    found = adversary_of(name)
    instances = [instance.exact for instance in found.futures.instances]
    data, up = dict(found.certificates[claim]), found.states.up
    best = found.states.deterministic(found.optima) if claim == "deterministic" else (
        found.best.value)  # fmt: skip
    draw, refused = random.Random(f"{name}-{claim}"), 0
    for number in range(600):
        made = copy.deepcopy(data)
        if number < 60:  # claims more, by bounds, weights and schedules
            made["bound"] *= 1 + (-1 if up else 1) * 10 ** draw.uniform(-13, 0)
            for row in made["scenarios"] if number % 3 else ():
                row["weight"] *= draw.choice([1, 0.5, 2]) if claim == "guarantee" else 1
            if number % 3 == 2:
                a, b = draw.sample(range(len(instances)), 2)
                rows = made["scenarios"]
                rows[a]["schedule"], rows[b]["schedule"] = rows[b]["schedule"], rows[a]["schedule"]
        else:
            made = mutate(made, draw)
        try:
            proven = prove(instances, made)
        except (RefusedFile, *MALFORMED):
            refused += 1
            continue
        assert made["claim"] in ("guarantee", "deterministic", "expected")
        if made["claim"] == claim:
            assert proven.high >= best * (1 - 1e-9) if up else proven.low <= best * (1 + 1e-9)
    assert refused > 300


def edited(folder: Any, name: str, check: Any) -> list[Any]:
    """Places of a folder's result that may be changed unseen."""
    result = folder / name
    data, unseen = json.loads(result.read_text()), []
    for place in places(data):
        *parents, key = place
        made = copy.deepcopy(data)
        inside = made
        for parent in parents:
            inside = inside[parent]
        value = inside[key]
        if isinstance(value, dict | list) or place[0] in ("seconds", "search"):
            continue
        is_number = isinstance(value, int | float)
        inside[key] = value * 1.01 + 1e-3 if is_number else f"{value}x"
        result.write_text(json.dumps(made))
        try:
            if not check(folder):
                unseen.append(place)
        except hs.HindschedError:
            pass
    result.write_text(json.dumps(data))
    assert not check(folder)
    return unseen


@pytest.mark.parametrize("name", ["gang", "oasis"])
def test_every_number_of_a_folder_is_made_again(name: str, tmp_path: Any) -> None:
    adversary_of(name).write(tmp_path)
    assert not edited(tmp_path, "adversary.json", verify_adversary)
    solution = tmp_path / "hindsight-1.json"
    solution.write_text((tmp_path / "hindsight-0.json").read_text())
    with pytest.raises(hs.HindschedError):
        verify_adversary(tmp_path)


def test_every_number_of_a_foresight_folder_is_made_again(tmp_path: Any) -> None:
    found = hs.foresight(ambush(4, 3, 3), algorithms=["fifo"])
    assert not found.unproven
    assert found.certified["guarantee"] == pytest.approx(found.guarantee.lower, rel=1e-9)
    found.write(tmp_path)
    assert not edited(tmp_path, "foresight.json", verify_foresight)


def test_a_search_is_the_same_for_any_number_of_workers_and_goes_on(tmp_path: Any) -> None:
    ranges = {"gpus": 1, "jobs.gpus": 1}
    asked = {"ranges": ranges, "jobs": 4, "futures": 4}
    whole = hs.adversary("gang", work_limit=24, workers=2, **asked)
    hs.adversary("gang", work_limit=8, folder=tmp_path, **asked)
    found = hs.adversary("gang", work_limit=24, folder=tmp_path, resume=True, **asked)
    assert found.to_dict()["futures"] == whole.to_dict()["futures"]
    assert found.ratio > 1
    assert not verify_adversary(tmp_path)
    with pytest.raises(hs.InputError, match="as before"):
        hs.adversary("gang", work_limit=9, folder=tmp_path, resume=True, ranges=ranges)
