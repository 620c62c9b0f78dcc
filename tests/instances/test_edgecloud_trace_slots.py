"""The length of a slot that is asked for is that of the instance."""

from hindsched.instances.edgecloud.generator import from_trace
from hindsched.instances.traces.table import load_trace


def test_the_slot_of_a_trace_is_the_slot_of_the_file(tmp_path):
    rows = ["job_id,submission_time,duration,num_gpu", "a,0,600,1", "b,1800,900,2"]
    path = tmp_path / "jobs.csv"
    path.write_text("\n".join(rows))
    made = from_trace(load_trace(path, "elasticflow"), jobs=2, slot_seconds=900.0)
    assert made.slot_seconds == 900
    assert [job.arrival for job in made.jobs] == [1, 3]
