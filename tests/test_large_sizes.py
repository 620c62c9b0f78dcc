"""What is too large is refused before it is built, and empty slots cost nothing."""

import numpy as np
import pytest

import hindsched as hs
from hindsched.cli.app import run
from hindsched.errors import InputError
from hindsched.instances.io import parse_instance, write
from hindsched.models.batchsched.list_schedule import wspt_schedule
from hindsched.online.base import build_state
from hindsched.online.simulator import environment_of
from hindsched.solutions.base import Commitments
from hindsched.solvers.base import build_oracle
from tests.hostile import EXAMPLES, hostile


@pytest.mark.parametrize("command", [
    ["solve", "{}"], ["solve", "{}", "--method", "milp"], ["solve", "{}", "--method", "relaxation"],
    ["model", "{}"],
])  # fmt: skip
@pytest.mark.parametrize("family", ["oasis", "edgecloud", "astraea", "batchsched"])
def test_a_program_of_many_slots_is_refused_where_nobody_set_a_limit(
    family, command, tmp_path, capsys
):
    if family == "batchsched" and command[0] == "solve" and "relaxation" not in command:
        pytest.skip("they search for a schedule first, and auto has small programs only")
    path = tmp_path / "x.json"
    write(hostile(family), path)
    assert run([word.format(path) for word in command]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "GB: must fit into 2 GB where no limit is given: take longer slots" in error
    assert error.endswith("say by --time-limit what it may take\n")


@pytest.mark.parametrize("where", ["truth", "program"])
@pytest.mark.parametrize("family", ["oasis", "batchsched", "astraea"])
def test_slots_in_which_nothing_happens_are_not_laid_out(family, where):
    """A job that arrives in slot 10^7 takes the room of its own slots, not of all before."""
    instance = hs.named_instance(EXAMPLES[family]).with_fields(horizon=10**7)
    jobs = (*instance.jobs[:2], instance.jobs[-1].model_copy(update={"arrival": 10**7 - 2}))
    instance = instance.with_jobs(jobs)
    if where == "program":
        if family == "oasis":
            pytest.skip("its programs have a column in every slot, and are refused")
        if family == "batchsched":
            planned = wspt_schedule(instance, Commitments())
            assert max(row.last for rows in planned.rows.values() for row in rows) >= 10**7 - 2
        return
    truth = build_state(instance, environment_of(instance, {}))
    assert truth is not None


def test_a_program_of_too_many_columns_is_refused(monkeypatch):
    instance = hs.named_instance(EXAMPLES["batchsched"])
    monkeypatch.setattr("hindsched.models.batchsched.offline.MOST_COLUMNS", 10)
    with pytest.raises(InputError, match="columns: must be at most 10 where no limit is given"):
        hs.solve(instance, "milp")


def test_a_schedule_of_ten_million_slots_is_refused_before_it_is_laid_out(monkeypatch):
    """Of mlbroker, whose costs are accounted slot by slot: a job's few rows say nothing of it."""
    instance = hs.named_instance(EXAMPLES["mlbroker"])
    schedule = hs.simulate(instance, "mlbroker").solution.assignments()
    data = instance.to_dict()
    data["horizon"] = 10**7
    long = parse_instance(data)
    monkeypatch.setattr(np, "zeros", lambda *_, **__: pytest.fail("laid out"))
    with pytest.raises(InputError, match=r"a schedule over 10000000 slots: about .* GB"):
        hs.build_solution(long, schedule)
    with pytest.raises(InputError, match=r"prices of \d+ rows over 10000000 slots: about .* GB"):
        build_oracle(long, "tight")
