"""Known answers of the replayed policies: generated instances, and the lists of a real trace."""

import gzip
import os
from pathlib import Path

import pandas as pd
import pytest

from hindsched.instances.gang.instance import GangInstance, gang_data
from hindsched.online.simulator import simulate
from hindsched.solvers.families.gang.replay import replay

ANSWERS = {200: (43228.75, 35699.3), 1000: (88907.0, 87290.0), 3629: (240177.8, 162328.8)}


@pytest.mark.parametrize("jobs", ANSWERS)
def test_fifo_and_first_fit_have_the_known_mean(jobs):
    folder = os.environ.get("HINDSCHED_TRACES")
    if not folder:
        pytest.skip("needs the traces that HINDSCHED_TRACES names")
    with gzip.open(Path(folder, "workloads", f"w_ef05_{jobs}_job.csv.gz")) as stream:
        rows = pd.read_csv(stream)
    columns = (rows["job_id"], rows["submit_time"], rows["duration"], rows["num_gpu"])
    records = [
        {"name": f"j{name}", "submit": int(s), "duration": int(d), "gpus": int(g)}
        for name, s, d, g in zip(*columns, strict=True)
    ]
    instance = GangInstance.parse(gang_data("list", records, gpus=16))
    for policy, known in zip(("fifo", "fifo-skip"), ANSWERS[jobs], strict=True):
        for solution in (replay(instance, policy), simulate(instance, policy).solution):
            assert solution.metrics()["mean_jct"] == pytest.approx(known, abs=0.051)
