"""Every printed program, and ours beside it, as a file of a tiny instance: no row may go unseen.

``python -m tests.models.test_golden`` writes the files anew; the differences are then read.
"""

from __future__ import annotations

from pathlib import Path

import pyomo.environ as pyo
import pytest

import hindsched as hs
from tests.strategies.edgecloud import instance, job

FOLDER = Path(__file__).parents[1] / "golden"
TINY = {
    "oasis": {"jobs": 2, "horizon": 5},
    "batchsched": {"jobs": 2, "servers": 2},
    "batchsched-ring": {"jobs": 2, "servers": 2, "architecture": "ring-allreduce"},
    "astraea": {"jobs": 2, "horizon": 4, "servers": 2},
    "mlbroker": {"jobs": 1, "horizon": 2, "datacenters": 2},
    "gang": {"jobs": 2, "servers": 2, "placement": "consolidated"},
    "gang-pool": {"jobs": 2, "servers": 2},
}
PROGRAMS = {
    "oasis": [("standard", "printed"), ("standard", "cumulative")],
    "batchsched": [("modes", "printed"), ("modes", "modes")],
    "batchsched-ring": [("modes", "printed")],
    "astraea": [
        ("optional,modes", "printed"), ("optional,modes", "modes"),
        ("must-complete,modes", "printed"),
    ],
    "edgecloud": [("literal", "printed"), ("no-migration", "strong")],
    "mlbroker": [("paper", "printed"), ("tight", "disaggregated")],
    "gang": [
        ("non-preemptive", "printed"), ("non-preemptive", "starts"), ("preemptive", "printed"),
        ("preemptive", "windows"), ("elastic", "printed"), ("elastic,makespan", "windows"),
        ("non-preemptive,deadlines", "printed"), ("elastic,makespan", "printed"),
    ],
    "gang-pool": [("preemptive", "printed")],
}  # fmt: skip
NO_ROWS = {"astraea": {"eq_4a"}, "edgecloud": {"eq_2j_running", "no_migration"}}
"""Rules that only jobs which must complete, or a history, have rows of."""
CASES = [(family, *both) for family, programs in PROGRAMS.items() for both in programs]


def tiny(name):
    """A tiny instance of the family that the name begins with."""
    if name != "edgecloud":
        return hs.generate(name.partition("-")[0], seed=1, **TINY[name])
    # limited in everything: a worker, a PS and storage at the edge, a worker and a PS in the cloud
    servers = [{"name": "a", "workers": ["t1"], "ps": ["p"], "storage_gb": 1}]
    jobs = [
        job("j0", 1, 2, 2, 1, {"a": 0, "cloud": 1}, chunk_gb=1),
        job("j1", 2, 1, 1, 1, {"a": 1, "cloud": 0}, chunk_gb=1),
    ]
    return instance(servers, jobs, {"workers": {"t1": 1}, "ps": {"p": 1}}, horizon=3)


def path_of(family, formulation, form):
    return FOLDER / f"{family}-{formulation.replace(',', '-')}-{form}.lp"


def written(family, formulation, form, folder):
    """The program as an LP file with a row a line, without comments."""
    path = folder / "program.lp"
    hs.model(tiny(family), formulation=formulation, form=form).write(path)
    lines = [line for line in path.read_text().splitlines() if not line.startswith("\\*")]
    rows, bounds, rest = "\n".join(lines).strip().partition("\nbounds\n")
    assert bounds
    return "\n".join(" ".join(row.split()) for row in rows.split("\n\n")) + bounds + rest + "\n"


@pytest.mark.parametrize(("family", "formulation", "form"), CASES)
def test_the_program_is_the_golden_one(family, formulation, form, tmp_path):
    golden = path_of(family, formulation, form).read_text(encoding="utf-8")
    assert written(family, formulation, form, tmp_path).splitlines() == golden.splitlines()


@pytest.mark.parametrize(("family", "formulation", "form"), CASES)
def test_the_tiny_instance_has_a_row_of_every_rule(family, formulation, form):
    """Nobody would see a rule change of which it has none."""
    model = hs.model(tiny(family), formulation=formulation, form=form)
    rules = list(model.program.model.component_objects(pyo.Constraint, active=True))
    seen = {rule.local_name for rule in rules if len(rule)}
    assert {rule.local_name for rule in rules} - seen <= NO_ROWS.get(family, set())


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for case in CASES:
        path_of(*case).write_text(written(*case, Path("/tmp")), encoding="utf-8")
