"""Files made to exhaust a checker: one line, exit 2, little time and memory."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import hindsched
from hindsched.instances.base import canonical_json
from hindsched.instances.io import parse_instance
from hindsched.kernel.reading import load

KNOWN = Path(hindsched.__file__).parent / "instances" / "known"
SECONDS, BYTES = 10, 1 << 30
"""CPU seconds of a machine that may be slow (measured: below 5), and memory."""

FEW = ("--limit", "steps=3000000")
"""A tenth of the default, for quick tests."""


def files(folder, instance, **certificate):
    """Write an instance and a certificate of it."""
    data = canonical_json(instance)
    own = {
        "format": "hindsched-certificate/1", "family": instance["family"],
        "instance": instance["name"], **certificate,
    }  # fmt: skip
    paths = [folder / "instance.json", folder / "certificate.json"]
    paths[0].write_text(data)
    own["instance_sha256"] = load(str(paths[0]))[1]  # of instances that the package refuses too
    paths[1].write_text(json.dumps(own))
    return [str(path) for path in paths]


def kernel(arguments):
    """Run the kernel within `SECONDS` and `BYTES`."""

    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))

    return subprocess.run(
        [sys.executable, "-m", "hindsched.kernel", *arguments], preexec_fn=limit,
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def refused(arguments, says):
    """One line that says why, exit code 2, nothing on the error stream."""
    done = kernel(arguments)
    last = done.stdout.splitlines()[-1]
    assert (done.returncode, done.stderr) == (2, "")
    assert last.startswith("refused: ")
    assert says in last


def oasis(horizon=10):
    data = json.loads((KNOWN / "oasis-t10-i10-h5-s1.json").read_text())
    return data | {"horizon": horizon}


NO_PRICES = {"worker_capacity": [], "ps_capacity": []}
TREE = {"formulation": "standard", "kind": "tree", "sense": "max", "bound": 1e9}


def leaf(decisions):
    return {"decisions": decisions, "bound": 1e9, "prices": NO_PRICES}


def completes(job, **side):
    return {"job": job, "of": "completion", **side}


def tree_of(levels):
    """So many levels of sound splits on the jobs' completions."""
    jobs = [job["name"] for job in oasis()["jobs"]]
    splits = [(jobs[level % 10], 4 + level // 10) for level in range(levels)]
    return [
        leaf([
            completes(job, at_most=k) if number >> level & 1 else completes(job, at_least=k + 1)
            for level, (job, k) in enumerate(splits)
        ])
        for number in range(2**levels)
    ]  # fmt: skip


def test_a_tree_of_32768_leaves(tmp_path):
    arguments = files(tmp_path, oasis(), prices=tree_of(15), **TREE)
    refused(arguments, "--limit items=")


def test_a_tree_of_4096_leaves(tmp_path):
    """Every leaf takes some milliseconds: the steps of all of them are counted together."""
    arguments = files(tmp_path, oasis(), prices=tree_of(12), **TREE)
    refused([*arguments, *FEW], "--limit steps=")
    refused([*arguments, "--limit", "leaves=999"], "--limit leaves=")


def test_a_caterpillar_of_400_leaves(tmp_path):
    """Every leaf is one decision deeper than the one before."""
    name = oasis()["jobs"][0]["name"]
    leaves = []
    for depth in range(400):
        before = [completes(name, at_least=k + 1) for k in range(1, depth + 1)]
        leaves.append(leaf([*before, completes(name, at_most=depth + 1)]))
    leaves.append(leaf([completes(name, at_least=k + 1) for k in range(1, 401)]))
    done = kernel(files(tmp_path, oasis(), prices=leaves, **TREE))
    assert (done.returncode, done.stderr) == (0, "")
    assert "bound " in done.stdout


@pytest.mark.parametrize("horizon", [10**6, 10**7])
def test_a_long_horizon(tmp_path, horizon):
    data = oasis(horizon)
    refused(
        files(tmp_path, data, formulation="standard", kind="lagrangian", sense="max", bound=1e9,
              prices=NO_PRICES), "--limit ",
    )  # fmt: skip


def test_prices_that_make_mlbroker_search_without_end(tmp_path):
    """Thirty centres that hardly differ, and prices on every launch."""
    names = [f"c{r}" for r in range(30)]
    data = {
        "format": "hindsched/1", "family": "mlbroker", "name": "hard", "horizon": 10,
        "slot_seconds": 3600, "resources": ["gpu"],
        "datacenters": [
            {"name": name, "prices": {"gpu": {"unit_usd": 1 + r / 1000,
             "discounted_usd": 0.9, "threshold": 50}}} for r, name in enumerate(names)
        ],
        "transfer_usd_per_gb": [[abs(a - b) % 7 / 10 + (a != b) for a in range(30)]
                                for b in range(30)],
        "jobs": [
            {"name": f"j{i}", "arrival": 1, "departure": 10, "worker": {"gpu": 1},
             "ps": {"gpu": 1}, "capacity_gb": 7, "exchange_gb": 0.1, "deployment_usd": 3,
             "data_gb": [[(a * 37 + t * 11 + i) % 13 + 0.5 for a in range(30)]
                         for t in range(10)]} for i in range(10)
        ],
    }  # fmt: skip
    prices = {"discount": [], "deployment": [
        {"datacenter": name, "job": f"j{i}", "from": 1, "to": 10, "price": 1.7}
        for name in names for i in range(10)]}  # fmt: skip
    arguments = files(
        tmp_path, data, formulation="tight", kind="lagrangian", sense="min", bound=0, prices=prices
    )
    refused([*arguments, *FEW], "--limit steps=")


def test_many_prices_of_a_long_horizon(tmp_path):
    """A leaf costs as many steps as its prices name slots, though its job comes last."""
    data = oasis(40_000)
    data["jobs"] = [{**data["jobs"][0], "arrival": 40_000}]
    name, resource = data["worker_servers"][0]["name"], data["resources"][0]
    row = {"group": name, "resource": resource, "from": 1, "to": 40_000, "price": 0}
    job = data["jobs"][0]["name"]
    leaves = [
        leaf(
            [completes(job, at_least=k + 1) for k in range(depth)] + [completes(job, at_most=depth)]
        )
        for depth in range(300)
    ]
    leaves.append(leaf([completes(job, at_least=k + 1) for k in range(300)]))
    for each in leaves:
        each["prices"] = {"worker_capacity": [row], "ps_capacity": []}
    refused([*files(tmp_path, data, prices=leaves, **TREE), *FEW], "--limit steps=")


def test_a_solution_of_long_rows(tmp_path):
    """A row of many slots is booked as one run: 200 jobs over a whole horizon take no time."""
    data = oasis(40_000)
    data["jobs"] = [{**data["jobs"][0], "name": f"j{n}"} for n in range(200)]
    own = {"format": "hindsched-solution/1", "family": "oasis", "instance": data["name"],
           "instance_sha256": parse_instance(data).sha256(), "formulation": "standard"}  # fmt: skip
    server = data["worker_servers"][0]["name"]
    row = {"from": 1, "to": 40_000, "workers": {server: 1}, "ps": {}}
    jobs = [{"name": job["name"], "completion": None, "assignments": [row]} for job in data["jobs"]]
    paths = [tmp_path / "instance.json", tmp_path / "solution.json"]
    for path, text in zip(paths, (data, {**own, "objective": 0, "jobs": jobs}), strict=True):
        path.write_text(json.dumps(text))
    done = kernel([*map(str, paths), *FEW])
    assert (done.returncode, done.stderr) == (1, "")  # judged, and found to break a capacity


def test_many_values_of_a_utility(tmp_path):
    """A power takes hundreds of microseconds: each counts."""
    data = json.loads((KNOWN / "astraea-j5-s40.json").read_text()) | {"horizon": 10**6}
    for job in data["jobs"]:
        job["utility"] = {"kind": "power", "scale": 1e6, "exponent": 0.3}
    row = {"type": "worker", "from": 1, "to": 10**6, "price": 1e9}
    prices = {"worker_capacity": [row], "ps_capacity": []}
    arguments = files(
        tmp_path, data, formulation="optional,modes", kind="lagrangian", sense="max", bound=1e30,
        prices=prices, layout="cluster",
    )  # fmt: skip
    refused([*arguments, *FEW], "--limit steps=")
