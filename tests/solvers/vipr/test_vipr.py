"""Proofs in VIPR's format: accepted by a checker written from the format's page, and by viprchk."""

from __future__ import annotations

import re
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hindsched as hs
from hindsched.cli.app import run
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.door.standard_form import compile_program
from hindsched.solvers.vipr.branching import Branching
from hindsched.solvers.vipr.exact_program import ExactProgram
from hindsched.solvers.vipr.file import ViprFile, proven_bound
from hindsched.solvers.vipr.prove import vipr_proof
from tests.solvers.vipr.reader import WrongProofError, check

PAPER = """% the example of the format's page
VER 1.1
VAR 2
x y
INT 2
0 1
OBJ min
2 0 1 1 1
CON 2 0
C1 G 1 2 0 4 1 1
C2 L 2 2 0 4 1 -1
RTP range 1 1
SOL 2
feas 2 0 1 1 2
opt 1 1 1
DER 4
C3 G -1/2 1 1 1 { lin 2 0 1/2 1 -1/2 } 3
C4 G 0 1 1 1 { rnd 1 2 1 } 4
C5 G 1/4 OBJ { lin 2 0 1/4 3 3/4 } 5
C6 G 1 OBJ { rnd 1 4 1 } 0
"""
FAMILIES = {
    "oasis": {"jobs": 4, "horizon": 6},
    "batchsched": {"jobs": 2},
    "astraea": {"jobs": 2},
    "edgecloud": {"jobs": 5},
    "mlbroker": {"jobs": 2},
}


def viprchk(text, folder):
    """Let the format's own checker judge, where it is installed."""
    program = shutil.which("viprchk")
    if program is not None:
        path = Path(folder) / "proof.vipr"
        path.write_text(text)
        done = subprocess.run([program, str(path)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Successfully verified" in done.stdout


def test_the_reader_knows_the_pages_example():
    assert check(PAPER) == (1, 1)


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("opt 1 1 1", "opt 1 1 2"),
        ("opt 1 1 1", "opt 1 1 1/2"),
        ("RTP range 1 1", "RTP range 2 2"),
        ("C3 G -1/2", "C3 G -1/4"),
        ("{ rnd 1 2 1 }", "{ lin 1 2 1 }"),
        ("0 1/2 1 -1/2", "0 1/2 1 1/2"),
        ("INT 2\n0 1", "INT 1\n0"),
        ("{ rnd 1 4 1 }", "{ asm }"),
        ("0 1/4 3 3/4", "0 1/4 5 3/4"),
        ("VER 1.1", "VER 3.0"),
        ("C1 G 1 2 0 4 1 1", "C1 G 1 2 0 4 0 1"),
    ],
)
def test_the_reader_refuses_what_does_not_follow(was, becomes):
    assert was in PAPER
    with pytest.raises(WrongProofError):
        check(PAPER.replace(was, becomes))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("relax", [True, False])
def test_programs_of_every_family_are_proven(family, relax, tmp_path):
    instance = hs.generate(family, preset="small", seed=1, **FAMILIES[family])
    proof = vipr_proof(instance, relax=relax, time_limit=20, most_nodes=40)
    low, high = check(proof.text)
    viprchk(proof.text, tmp_path)
    maximises = instance.sense == "max"
    assert (high if maximises else low) == proof.bound
    assert (low if maximises else high) in (proof.objective, "inf", "-inf")
    result = hs.model(instance, relax=relax).solve()
    sign = 1 if maximises else -1
    assert sign * (float(proof.bound) - result.objective) >= -1e-6 * abs(result.objective)
    if relax or proof.stopped == "closed":
        assert float(proof.bound) == pytest.approx(result.objective, rel=1e-6)


def random_model(seed, infeasible=False):
    """A little program with rows of all senses, free columns and a constant."""
    rng = np.random.default_rng(seed)
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(4), domain=pyo.NonNegativeIntegers, bounds=(0, 5))
    model.y = pyo.Var(range(2), bounds=(None, None))
    both = [*model.x.values(), *model.y.values()]
    model.rows = pyo.ConstraintList()
    for _ in range(4):
        row = sum(int(a) * v for a, v in zip(rng.integers(-3, 6, 6), both, strict=True))
        model.rows.add(row <= float(rng.integers(5, 20)) / 4)
    model.rows.add(pyo.inequality(-9, model.y[0] + 0.1 * model.x[0], 9))
    model.rows.add(model.y[1] + 2 * model.x[1] == 3.7)
    if infeasible:
        model.rows.add(sum(2 * v for v in model.x.values()) == 7)
    sense = pyo.maximize if seed % 2 else pyo.minimize
    costs = np.round(rng.normal(size=6), 1)
    terms = sum(float(c) * v for c, v in zip(costs, both, strict=True))
    model.objective = pyo.Objective(expr=terms + 2.5, sense=sense)
    return model


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(st.integers(0, 10**6), st.booleans())
def test_trees_of_random_programs(seed, infeasible):
    model = random_model(seed, infeasible)
    program = compile_program(model)
    exact = ExactProgram(program)
    tree = Branching(program, exact).search(None, 400, 20)
    text = ViprFile(exact, tree, "random").text()
    low, high = check(text)
    found = solve_program(model)
    if infeasible:
        assert low == "infeas" or tree.stopped != "closed"
        return
    if not found.has_point:
        assert (low, tree.value) == ("infeas", None)
        return
    bound = float(exact.sign * proven_bound(tree.root))
    assert exact.sign * (found.objective - bound) >= -1e-6 * max(1, abs(bound))
    assert bound == pytest.approx(found.objective, rel=1e-6, abs=1e-6)
    assert (high if exact.sign < 0 else low) == exact.sign * proven_bound(tree.root)


@settings(max_examples=30, deadline=None, derandomize=True, database=None)
@given(st.integers(0, 10**6), st.lists(st.floats(-5, 5), min_size=6, max_size=6))
def test_any_duals_prove_at_most_the_optimum(seed, duals):
    model = random_model(seed)
    for y in model.y.values():
        y.setlb(-50)
        y.setub(50)
    program = compile_program(model)
    exact = ExactProgram(program)
    proof = exact.prove(np.resize(duals, len(program.rows)))
    found = solve_program(model)
    if found.has_point:
        assert float(proof.bound) <= exact.sign * found.objective + 1e-6


def test_a_tampered_proof_is_refused():
    instance = hs.generate("edgecloud", preset="small", seed=1, jobs=5)
    text = vipr_proof(instance, time_limit=20).text
    claim = re.search(r"RTP range (\S+) (\S+)", text)
    low = Fraction(claim[1])
    for changed in (
        text.replace(claim[0], f"RTP range {low + 1} {claim[2]}"),
        text.replace(claim[0], f"RTP range {claim[1]} {low - 1}"),
        re.sub(r"\{ asm \}", "{ lin 0 }", text, count=1),
        re.sub(r"uns (\d+) (\d+)", r"uns \2 \1", text, count=1),
    ):
        assert changed != text
        with pytest.raises(WrongProofError):
            check(changed)


def test_the_command_line(tmp_path, capsys):
    instance, proof = tmp_path / "i.json", tmp_path / "proof.vipr"
    hs.write(hs.generate("batchsched", preset="small", seed=1, jobs=2), instance)
    assert run(["certify", str(instance), "--vipr", str(proof), "--relax"]) == 0
    assert check(proof.read_text())[0] == 44
    capsys.readouterr()
    assert run(["certify", str(instance), "--vipr", str(instance)]) == 2
    assert run(["certify", str(instance), "--vipr", str(proof), "--form", "absent"]) == 2
    assert run(["certify", str(instance), "--vipr", str(proof), "--time-limit", "-1"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 3
