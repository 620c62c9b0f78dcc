"""Games of a few futures: values against all policies by brute force, certificates, forgeries."""

from __future__ import annotations

import copy
import functools
import json
import random
from typing import Any

import hypothesis
import numpy as np
import pytest
from scipy.optimize import linprog

import hindsched as hs
from hindsched.analysis.adversary.folder import verify_adversary
from hindsched.analysis.foresight.folder import verify_foresight
from hindsched.analysis.foresight.game import game_of
from hindsched.analysis.foresight.mixed import tree_lines
from hindsched.analysis.foresight.play import schedule
from hindsched.analysis.foresight.states import StateGame
from hindsched.cli.app import run
from hindsched.instances.base import Instance
from hindsched.instances.io import parse_instance
from hindsched.kernel import MALFORMED, RefusedFile
from hindsched.kernel.games import Game, fronts
from hindsched.kernel.nonanticipative import prove
from hindsched.solvers.door.work import counting
from tests.brute_force import policies as brute
from tests.mutations.engine import mutate, places
from tests.scripts import script

GAMES = 3 * hypothesis.settings.default.max_examples
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


def astraea(draw: random.Random, jobs: list[list[int]], room: int) -> list[Instance]:
    """Jobs of one or two workers on servers of three, slower on two servers; some earn nothing."""
    cluster = {
        "family": "astraea", "horizon": 6, "utility_origin": "arrival",
        "worker_bandwidth_mbps": 16, "ps_bandwidth_mbps": 16,
        "servers": [{"name": f"s{n}", "workers": 3, "ps": 9} for n in range(room)],
        "tenants": [{"name": "u", "worker_quota": 3 * room, "ps_quota": 9 * room}],
    }  # fmt: skip
    records = [
        {"name": f"j{n}", "tenant": "u", "arrival": a - 1, "epochs": 1, "chunks": 2,
         "minibatches": p, "minibatch_slots": 1, "update_slots": 0, "gradient_mb": 1,
         "utility": {"kind": "linear", "slope": -1, "intercept": 3 * w}}
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
    "astraea": (astraea, "optional,modes", "run"),
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
    if family == "astraea":
        places = {name: on_servers(p, room) for name, (_, p, _, _) in names.items()}

        def worth(job: str, end: int) -> float:
            return 3 * names[job][3] - (end - names[job][0] + 1)

        step = brute.windows(places, (3,) * room, worth, 6, "run", True)
        return brute.values(told, step, 6, True)
    wide = family == "gang"
    ways = {name: [(p, (min(g, room) if wide else 1,))] for name, (_, p, g, _) in names.items()}
    last = 3 + sum(p for _, p, _, _ in jobs)

    def cost(job: str, end: int) -> float:
        a, _, _, w = names[job]
        return w * (end + 1 - a if wide else end + 1)

    step = brute.windows(ways, (room,), cost, last, "run", False)
    return brute.values(told, step, last, False)


def on_servers(minibatches: int, room: int) -> list[Any]:
    """Windows of astraea's jobs: length, and workers by server; apart they take twice as long."""
    alone = [tuple(int(at == s) for at in range(room)) for s in range(room)]
    ways = [(2 * minibatches, use) for use in alone]
    ways += [(minibatches, tuple(2 * n for n in use)) for use in alone]
    return ways + [(2 * minibatches, (1, 1))] * (room == 2)


@pytest.mark.parametrize("family", BUILDERS)
def test_values_are_those_of_all_policies(family: str) -> None:
    _, formulation, policies = BUILDERS[family]
    for seed in range(GAMES // len(BUILDERS) + 1):
        instances, jobs, room = drawn(family, seed)
        up = family in ("astraea", "oasis")
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
        promised = [v / o for v, o in zip(expected(states, found.moves), optima, strict=True)]
        assert inner(promised) == pytest.approx(found.value, rel=1e-7)


def test_servers_whose_jobs_end_at_other_times_are_not_alike() -> None:
    """Two long jobs share a server, so that the other one is free when the short job has ended."""
    data = astraea(random.Random(0), [[1, 1, 1, 9]], 2)[0].to_dict()
    for server in data["servers"]:
        server["workers"] = 2
    data["tenants"][0]["worker_quota"], data["horizon"] = 4, 12
    data["jobs"] = [
        {**data["jobs"][0], "name": name, "arrival": at, "chunks": most, "minibatches": number}
        for name, at, most, number in (
            ("a", 0, 1, 2),
            ("b", 1, 1, 8),
            ("c", 1, 1, 8),
            ("d", 2, 2, 4),
        )
    ]
    states = StateGame(Game([parse_instance(data).exact], "optional,modes", "run"), up=True)
    assert states.alone(0)[0] == pytest.approx((27 - 2) + 2 * (27 - 8) + (27 - 4))


def expected(states: StateGame, moves: Any) -> list[float]:
    """Expected value of a policy in every future."""
    likely, values = {states.game.root(): 1.0}, [0.0] * states.size
    for state in states.graph:
        share = likely.pop(state, 0.0)
        for at, probability in states.choices(moves, state) if share else ():
            pays, after = states.graph[state][at]
            for s in state.futures:
                values[s] += share * probability * pays / states.scale
            for child in after:
                likely[child] = likely.get(child, 0.0) + share * probability
    return values


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


def states_of(found: hs.Adversary) -> StateGame:
    return game_of(found.futures.instances, found.policies, found.found.formulation)


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


def test_a_game_by_columns_has_its_value_by_hand() -> None:
    with counting():
        found = hs.Adversary.of(script("nobody").discount(), "run", time_limit=10)
    assert found.ratio == pytest.approx(12 / 11)
    assert found.ratio_deterministic == pytest.approx(9 / 8)
    assert found.replayed == pytest.approx(found.expected)
    assert "below 1.09 (proven by solver)" in found.sentences()[0]
    comes = found.futures.instances[1]
    other = comes.jobs[1].model_copy(update={"name": "other"})
    with pytest.raises(hs.InputError, match="must be of one of the futures"):
        hs.simulate(comes.with_fields(jobs=(comes.jobs[0], other)), found.policy)


@pytest.mark.parametrize("name", ["gang", "oasis"])
def test_the_best_policy_is_an_online_algorithm(name: str) -> None:
    found = adversary_of(name)
    states = states_of(found)
    for s, instance in enumerate(found.futures.instances):
        own = schedule(states, instance, s, states.alone(s)[1].__getitem__,
                       found.found.formulation)  # fmt: skip
        assert own.objective() == pytest.approx(found.optima[s])
    assert found.replayed == pytest.approx(found.expected, rel=1e-12)
    worst = min if states.up else max
    shares = [v / best for v, best in zip(found.expected, found.optima, strict=True)]
    assert worst(shares) == pytest.approx(states.randomised(found.optima).value, rel=1e-9)
    s = len(found.futures) - 2
    instance = found.futures.instances[s]
    runs = [hs.simulate(instance, found.policy, seed=seed, estimates={}) for seed in range(300)]
    values = [run.objective for run in runs]
    assert not any(run.violations for run in runs)
    assert len(set(values)) > 1
    off = abs(np.mean(values) - found.expected[s])
    assert off <= 4 * np.std(values) / len(values) ** 0.5 + 1e-9


@pytest.mark.parametrize("claim", ["guarantee", "deterministic"])
@pytest.mark.parametrize("name", ["gang", "oasis"])
def test_forged_and_mutated_certificates_prove_nothing_false(name: str, claim: str) -> None:
    found = adversary_of(name)
    instances = [instance.exact for instance in found.futures.instances]
    states = states_of(found)
    data, up = dict(found.found.certificates[claim]), states.up
    best = states.deterministic(found.optima) if claim == "deterministic" else (
        states.randomised(found.optima).value)  # fmt: skip
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


LABELS = {"method", "created_by", "produced_by", "format", "family"}
"""Of a schedule, which claim nothing."""
RESULTS = ("adversary.json", "foresight.json")


def edited(folder: Any, check: Any, less: bool = False) -> list[Any]:
    """Places of a folder's files at which a changed number or sentence is not seen."""
    unseen, last = [], {path.name.split("-")[0]: path for path in sorted(folder.glob("*.json"))}
    for path in last.values():
        data = json.loads(path.read_text())
        draw = random.Random(path.name)
        every = [place for place in places(data) if place]
        if path.name not in RESULTS:
            every = draw.sample(every, min(9, len(every)))
        for place in every:
            *parents, key = place
            made = copy.deepcopy(data)
            inside = made
            for parent in parents:
                inside = inside[parent]
            value = inside[key]
            if isinstance(value, dict | list) or (path.name not in RESULTS and LABELS & {*place}):
                continue
            is_number = isinstance(value, int | float)
            factor = 0.99 if less else 1.01
            inside[key] = value * factor + (1e-3 if not less else 0) if is_number else f"{value}x"
            if inside[key] == value:
                continue
            path.write_text(json.dumps(made))
            try:
                if not check(folder):
                    unseen.append((path.name, *place))
            except hs.HindschedError:
                pass
        path.write_text(json.dumps(data))
    assert not check(folder)
    return unseen


@pytest.mark.parametrize("less", [False, True])
@pytest.mark.parametrize("name", ["gang", "oasis"])
def test_every_number_of_a_folder_is_made_again(name: str, less: bool, tmp_path: Any) -> None:
    made = ambush(3, 2, 2), "run"
    if name == "oasis":
        made = chain(3, 2), "commit"
    hs.Adversary.of(*made).write(tmp_path)
    assert not edited(tmp_path, verify_adversary, less)
    solution = tmp_path / "hindsight-1.json"
    solution.write_text((tmp_path / "hindsight-0.json").read_text())
    with pytest.raises(hs.HindschedError):
        verify_adversary(tmp_path)


@pytest.mark.parametrize("less", [False, True])
def test_every_number_of_a_foresight_folder_is_made_again(less: bool, tmp_path: Any) -> None:
    found = hs.foresight(ambush(3, 2, 2), algorithms=["fifo"])
    assert not found.unproven
    assert found.certified["guarantee"] == pytest.approx(found.guarantee.lower, rel=1e-9)
    found.write(tmp_path)
    assert not edited(tmp_path, verify_foresight, less)


def test_what_is_not_proven_is_marked(tmp_path: Any, capsys: Any) -> None:
    futures = hs.tree("edgecloud", at=[1], branches=2, jobs=2, horizon=4, seed=1)
    found = hs.foresight(futures, policies="commit", time_limit=20)
    found.write(tmp_path)
    unseen = edited(tmp_path, verify_foresight)
    ends = {tuple(line.split(": ")) for line in found.unproven}
    assert ends
    for name, *place in unseen:
        assert name == "foresight.json", (name, place)
        assert tuple(place) in ends or place[0] in ("scenarios", "distribution"), place
    assert run(["verify", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "NOT PROVEN" in out
    assert all(name in out for name, *_ in ends)


def test_the_policy_is_told_as_a_tree() -> None:
    lines = tree_lines(adversary_of("oasis").futures, adversary_of("oasis").tree)
    assert lines[0] == "slot 1, 6 futures: with 71.4% nothing new"
    assert lines[-1] == "slot 1, 6 futures: with 28.6% j0 in 1 to 6"
    leaves = [line for line in lines if "5 to 6" in line]
    assert leaves == ["        slot 5, 2 futures: with 50.0% j4 in 5 to 6"]


def test_an_adversary_is_drawn() -> None:
    drawn = hs.plot.policy(adversary_of("gang"))
    assert drawn.get_title(loc="left") == "what the best policy found does"
    assert [label.get_text() for label in hs.plot.losses(adversary_of("gang")).get_yticklabels()]


def test_the_sentence_names_the_theorem() -> None:
    told = adversary_of("oasis").sentences()
    assert told[1].startswith("The theorem of `oasis` promises at most 18.26, where")
    assert "demands much smaller than capacities" in told[1]
    assert (
        adversary_of("gang").sentences()[1] == "No theorem of gang's paper promises a ratio here."
    )


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
