"""`hindsched.kernel.check`: the cases that were once judged in two ways, and what is said."""

from fractions import Fraction

import hindsched as hs
from hindsched import kernel


def oasis_run():
    run = hs.simulate(hs.generate("oasis", "small", 1), "oasis")
    return run.instance.to_dict(), run.solution.to_dict()


def test_a_capacity_is_told_with_job_slots_server_and_amount():
    instance, solution = oasis_run()
    row = next(job for job in solution["jobs"] if job["assignments"])["assignments"][0]
    server = next(iter(row["workers"]))
    record = next(item for item in instance["worker_servers"] if item["name"] == server)
    record["capacity"] = dict.fromkeys(record["capacity"], 0.1)
    found = kernel.check(instance, solution).violations
    assert [violation.first for violation in found] == sorted(v.first for v in found)
    broken = next(v for v in found if v.server == server)
    assert broken.rule == "(4)"
    assert broken.amount.denominator in (1, 10)
    said = f"(4): job {broken.job} "
    assert str(broken).startswith(said)
    assert f"on server {server} lacks " in str(broken)
    assert f" {broken.resource}: " in str(broken)


def test_what_was_given_up_counts_as_use_and_as_nothing_else():
    instance, solution = oasis_run()
    kept = kernel.check(instance, solution).value
    job = next(job for job in solution["jobs"] if job["assignments"])
    dropped = {"name": job["name"], "assignments": job["assignments"][:1]}
    job["assignments"], job["completion"] = [], None
    verdict = kernel.check(instance, solution | {"given_up": [dropped]})
    assert verdict.feasible
    assert verdict.value.high < kept.low
    row = dict(dropped["assignments"][0])
    row["workers"] = dict.fromkeys(row["workers"], 10**6)
    dropped["assignments"] = [row]
    found = kernel.check(instance, solution | {"given_up": [dropped]}).violations
    assert {violation.rule for violation in found} == {"(4)"}


def test_floats_are_the_decimals_that_they_print_as():
    assert kernel.ExactInstance({"family": "oasis", "x": [0.1]}).data["x"] == [Fraction(1, 10)]


def test_a_violation_reads_as_a_sentence():
    instance = hs.generate("oasis", seed=2)
    data = hs.simulate(instance, "fifo").solution.to_dict()
    job = next(job for job in data["jobs"] if job["assignments"])
    most = next(each.chunks for each in instance.jobs if each.name == job["name"])
    row = job["assignments"][0]
    [server] = list(row["workers"])[:1]
    row["workers"] = {server: most + 1}
    said = [str(violation) for violation in kernel.check(instance.to_dict(), data).violations]
    slots = (
        f"slots {row['from']}..{row['to']}" if row["to"] > row["from"] else f"slot {row['from']}"
    )
    assert f"(3): job {job['name']} in {slots} uses {most + 1} workers, at most {most}" in said
    assert any(" used, at most " in line for line in said if line.startswith("(4)"))
