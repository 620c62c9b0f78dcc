"""Solution files of every family: they read back, belong to their instance, and refuse bad rows."""

import copy
import functools

import pytest

import hindsched as hs
from hindsched.errors import InputError
from hindsched.instances.base import families_on
from hindsched.instances.io import read_json, write_json
from hindsched.solutions.base import build_solution, read_solution, write_solution

FAMILIES = families_on("solutions", "solution")


@functools.cache
def served(family):
    """A run of the family's first algorithm on a small instance."""
    return hs.simulate(hs.generate(family, seed=1), next(iter(hs.algorithms(family)))).solution


@pytest.mark.parametrize("family", FAMILIES)
def test_a_file_reads_back_and_belongs_to_its_instance(family, tmp_path):
    solution, path = served(family), tmp_path / "s.json"
    write_solution(solution, path, {"method": "run"})
    again = read_solution(path, solution.instance)
    assert again.assignments() == solution.assignments()
    assert (again.objective(), again.violations()) == (solution.objective(), [])
    assert again.job_rows() == solution.job_rows()
    assert again.usage_rows() == solution.usage_rows()
    with pytest.raises(InputError, match="instance_sha256"):
        read_solution(path, hs.generate(family, seed=2))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_schedule_of_no_jobs_uses_nothing(family):
    empty = build_solution(hs.generate(family, seed=1).with_jobs(()), {})
    assert not any(row["used"] for row in empty.usage_rows())


def first_job(**changed):
    return lambda data: data["jobs"][0].update(changed)


CLAIMS = [
    (lambda data: data.update(objective=1e9), "objective"),
    (lambda data: data.update(objective="much"), "must be a number"),
    (lambda data: data.update(formulation="imagined"), "formulation"),
    (lambda data: data.update(formulation=7), "must be a word"),
    (lambda data: data.update(jobs={}), "must be a list"),
    (lambda data: data.update(format="hindsched-solution/9"), "format"),
    (first_job(completion=10**6), "the decisions complete at"),
    (first_job(name=["j1"]), "must name each job of the instance once"),
    (first_job(name=7), "must name each job of the instance once"),
    (first_job(name="nobody"), "must name each job of the instance once"),
    (lambda data: data["jobs"].append(data["jobs"][0]), "must name each job of the instance once"),
    *(
        (first_job(assignments=rows), r"jobs\[0\].assignments: .*must be a list of objects")
        for rows in ("none", {}, [{}, "row"], [[]])
    ),
]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("change", "match"), CLAIMS)
def test_what_a_file_claims_is_checked(family, change, match, tmp_path):
    solution, path = served(family), tmp_path / "s.json"
    write_solution(solution, path)
    data = read_json(path)
    change(data)
    write_json(data, path)
    with pytest.raises(InputError, match=match):
        read_solution(path, solution.instance)


def malformed(row):
    """Rows that are none: a key too many or too few, and values of no kind that a file has."""
    yield row | {"colour": 1}
    for key in row:
        if key != "payment":
            if key in ("from", "to"):
                yield {name: value for name, value in row.items() if name != key}
            for value in (None, True, 1.5, -1, 10**30, "word", [1], {"nowhere": 1}):
                if not (isinstance(row[key], dict) and value is None):
                    yield row | {key: value}
    yield row | {"from": row["to"] + 1}


@pytest.mark.parametrize("family", FAMILIES)
def test_malformed_rows_are_refused_in_one_line(family):
    solution = served(family)
    name, rows = next(iter(solution.assignments().items()))
    for bad in malformed(copy.deepcopy(rows[0])):
        with pytest.raises(InputError) as refused:
            build_solution(solution.instance, {name: [bad]})
        assert "\n" not in str(refused.value)
    with pytest.raises(InputError, match="must name a job"):
        build_solution(solution.instance, {"nobody": rows})
