"""Folders of `foresight` that were edited by somebody who means to be believed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hindsched as hs
from hindsched.analysis.adversary.folder import verify_adversary
from hindsched.analysis.bounds import Bounds
from hindsched.analysis.foresight import foresight as module
from hindsched.analysis.foresight.folder import read_foresight, verify_foresight
from hindsched.analysis.foresight.search import peeking
from hindsched.instances.base import Instance
from hindsched.instances.io import parse_instance, write_json
from hindsched.kernel import RefusedFile
from hindsched.kernel.nonanticipative import prove
from hindsched.models.futures import Futures
from hindsched.solutions.base import build_solution, write_solution


def pool(*futures: list[dict[str, Any]]) -> list[Instance]:
    """Futures of one GPU; the first job has three slots."""
    base = {"name": "base", "submit": 0, "duration": 3, "gpus": 1, "weight": 1}
    cluster = {"format": "hindsched/1", "family": "gang", "gpus": 1, "slot_seconds": 1,
               "horizon": 5}  # fmt: skip
    return [
        parse_instance({**cluster, "name": f"f{n}", "jobs": [{**base, **more[0]}, *more[1:]]})
        for n, more in enumerate(futures)
    ]


def unit(at: int, weight: float) -> dict[str, Any]:
    """A job of one slot."""
    return {"name": "unit", "submit": at, "duration": 1, "gpus": 1, "weight": weight}


FUTURES = pool([{}], [{}, unit(1, 5)], [{}, unit(2, 7)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of `foresight` and of an adversary at once."""
    hs.Adversary(hs.foresight(FUTURES, algorithms=["fifo"])).write(tmp_path)
    assert verify_adversary(tmp_path) == []
    return tmp_path


def edit(path: Path, *place: Any, value: Any) -> None:
    """Change one value of a file."""
    data = json.loads(path.read_text())
    inside = data
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    path.write_text(json.dumps(data))


def test_a_number_is_one_number_however_it_is_written() -> None:
    alike = pool([{}], [{"weight": 1.0}, unit(1, 5)], [{}, unit(2, 7.0)], [{}, unit(2, 7)])
    futures = Futures.of(alike)
    assert len(futures) == 3, "the last is the one before"
    assert futures.members(0, 1) == (0, 1, 2)
    game = hs.Adversary.of(alike, "run")
    assert game.ratio == pytest.approx(hs.Adversary.of(FUTURES, "run").ratio, rel=1e-12)
    assert game.replayed == pytest.approx(game.expected)


def test_null_is_what_is_not_there(tmp_path: Path) -> None:
    due: dict[str, Any] = {"deadline": None}
    alike = pool([{}], [due, unit(1, 5)], [{}, unit(2, 7)], [due, {**unit(2, 7), **due}])
    game = hs.Adversary.of(alike, "run")
    assert len(game.futures) == 3
    assert game.ratio == pytest.approx(hs.Adversary.of(FUTURES, "run").ratio, rel=1e-12)
    game.write(tmp_path)
    assert verify_adversary(tmp_path) == []


def test_what_only_a_later_future_has_is_another_cluster() -> None:
    later = parse_instance({**FUTURES[1].to_dict(), "placement": "pool", "name": "later"})
    with pytest.raises(hs.InputError, match="must have the cluster of the first"):
        Futures.of([FUTURES[0], later])


def test_merged_futures_are_written_so_that_the_folder_holds(tmp_path: Path) -> None:
    found = hs.foresight([*FUTURES, FUTURES[1].with_fields(name="again")])
    assert "again is f1 again: merged" in found.sentences()
    found.write(tmp_path)
    assert verify_foresight(tmp_path) == []


@pytest.mark.parametrize(
    "place",
    [("guarantee", "lower"), ("guarantee_deterministic", "lower"), ("hindsight", "upper"),
     ("scenarios", 1, "optimum", "upper"), ("mixture", 0), ("distribution", "f1")],
    ids=str,
)  # fmt: skip
def test_the_tenth_digit_counts(folder: Path, place: tuple[Any, ...]) -> None:
    value: Any = json.loads((folder / "foresight.json").read_text())
    for key in place:
        value = value[key]
    edit(folder / "foresight.json", *place, value=value * (1 + 4e-10))
    assert verify_foresight(folder)


def test_numbers_that_are_words_and_files_that_are_gone_are_a_line(folder: Path) -> None:
    edit(folder / "foresight.json", "guarantee_deterministic", "lower", value="1.5")
    with pytest.raises(hs.InputError, match="as it was written"):
        verify_adversary(folder)
    edit(folder / "foresight.json", "guarantee_deterministic", "lower", value=None)
    (folder / "hindsight-1.json").unlink()
    lines = verify_adversary(folder)
    assert any("optimum: upper" in line for line in lines)
    assert any("hindsight: " in line for line in lines)


@pytest.mark.parametrize(
    ("key", "value"),
    [("objective", 1.0), ("objective", 8.1), ("instance", "f2"), ("instance_sha256", "0" * 64),
     ("formulation", "preemptive")],
)  # fmt: skip
def test_a_schedule_in_a_certificate_says_what_it_is(folder: Path, key: str, value: Any) -> None:
    path = folder / "certificate-guarantee.json"
    exact = [instance.exact for instance in FUTURES]
    assert prove(exact, json.loads(path.read_text()))
    edit(path, "scenarios", 1, "schedule", key, value=value)
    with pytest.raises((RefusedFile, LookupError)):
        prove(exact, json.loads(path.read_text()))
    assert verify_foresight(folder)


def test_what_an_algorithm_did_does_not_know_the_future(folder: Path) -> None:
    """Its files are exchanged for hindsight's, and all that follows is written anew."""
    first = len(json.loads((folder / "foresight.json").read_text())["mixture"])
    for n in range(3):
        (folder / f"run-{first}-{n}.json").write_text((folder / f"hindsight-{n}.json").read_text())
    lines, found = read_foresight(folder)
    if found is not None:
        write_json(found.result(), folder / "foresight.json")
    assert any("tells f" in line for line in [*lines, *verify_foresight(folder)])


@pytest.mark.parametrize("stem", ["mixture-0", "policy", "hindsight"])
def test_files_of_a_wider_problem_are_refused(folder: Path, stem: str) -> None:
    solution = build_solution(FUTURES[0], {"base": [{"from": 1, "to": 3, "gpus": 1}]}, "preemptive")
    assert not solution.violations()
    write_solution(solution, folder / f"{stem}-0.json")
    assert any("formulation: is not that" in line for line in verify_foresight(folder))


def test_a_file_names_the_future_that_it_is_of(folder: Path) -> None:
    edit(folder / "policy-1.json", "instance", value="f2")
    assert verify_foresight(folder) == ["policy-1.json: instance: must be f1"]


def test_a_future_more_is_not_overlooked(folder: Path) -> None:
    (folder / "future-3.json").write_text((folder / "future-2.json").read_text())
    assert verify_foresight(folder) == ["the futures are not those of the files, each once"]


def test_an_earlier_game_leaves_nothing_behind(folder: Path) -> None:
    hs.Adversary(hs.foresight(FUTURES[:2])).write(folder)
    assert verify_adversary(folder) == []


def test_a_bound_on_the_mean_is_of_the_probabilities(folder: Path) -> None:
    path = folder / "certificate-expected.json"
    for n, weight in enumerate((0, 0, 1)):
        edit(path, "scenarios", n, "weight", value=weight)
    edit(path, "bound", value=0.5)
    edit(folder / "foresight.json", "certified", "expected", value=0.5)
    assert "certificate-expected.json: weights: must be the probabilities" in verify_foresight(
        folder
    )


def test_an_optimum_is_the_kernels_whatever_is_stated(folder: Path) -> None:
    place = ("scenarios", 1, "optimum", "lower")
    edit(folder / "foresight.json", *place, value=1.0)
    _, found = read_foresight(folder)
    assert found is not None
    assert found.optima[1].lower == found.optima[1].upper
    edit(folder / "foresight.json", "algorithms", 0, "runs", value=True)
    assert "algorithms: 0: runs: True is stated, 1 follows" in verify_foresight(folder)


def test_the_last_slot_of_a_run_tells_futures_apart_too() -> None:
    futures = Futures.of(pool([{}], [{}, unit(4, 5)]))
    policy = [
        build_solution(instance, {"base": [{"from": 1, "to": last, "gpus": 1}]}, "preemptive")
        for instance, last in zip(futures.instances, (2, 3), strict=True)
    ]
    assert peeking(futures, policy, "run") == ["policy: base in slot 3 tells f1 and f0 apart"]


def test_the_word_nobody_is_of_a_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """An algorithm of a wider class may do more than those that commit."""
    told = [line for line in committed().sentences() if line.startswith(("No online", "oasis"))]
    assert len(told) == 2
    assert all("decides all of a job at its arrival" in line for line in told)
    assert "decides" not in "".join(hs.foresight(FUTURES).sentences())
    monkeypatch.setattr(module, "solve_game", lambda *asked: None)
    assert committed().guarantee.upper == pytest.approx(0.6)


def test_a_guarantee_that_reads_as_one_is_not_told() -> None:
    known = hs.foresight(FUTURES)
    for end, is_told in ((1 + 1e-14, False), (1.001, True)):
        lines = replace(known, guarantee=Bounds(end, 2.0)).sentences()
        assert any(line.startswith("No online") for line in lines) == is_told


def committed() -> Any:
    """Two jobs, of which one fits; the second is worth twice the first, if it comes."""
    cluster = {
        "format": "hindsched/1", "family": "oasis", "horizon": 2, "slot_seconds": 3600,
        "resources": ["gpu", "bw"], "bandwidth_resource": "bw",
        "worker_servers": [{"name": "w", "capacity": {"gpu": 1, "bw": 9}}],
        "ps_servers": [{"name": "p", "capacity": {"bw": 9}}],
    }  # fmt: skip
    jobs = [
        {"name": f"j{k}", "arrival": k + 1, "epochs": 2 - k, "chunks": 1, "minibatches": 1,
         "minibatch_slots": 1, "gradient_mb": 0, "worker": {"gpu": 1, "bw": 1}, "ps": {"bw": 1},
         "utility": {"kind": "linear", "slope": 0, "intercept": 3.0**k}} for k in range(2)
    ]  # fmt: skip
    futures = [parse_instance({**cluster, "name": f"f{k}", "jobs": jobs[: k + 1]}) for k in (0, 1)]
    return hs.foresight(futures, policies="commit", time_limit=20)
