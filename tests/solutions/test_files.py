"""Solution files with a wrong job: one line each."""

import pytest

from hindsched.errors import InputError
from hindsched.instances.io import read_json, write_json
from hindsched.solutions.base import build_solution, read_solution, write_solution
from tests.astraea_example import worked_example

ROW = {"from": 4, "to": 5, "workers": {"s1": 2}, "ps": {"s1": 1}}


def changed(tmp_path, key, value):
    """The worked example, and a file of a solution whose first job was changed."""
    example, path = worked_example(), tmp_path / "s.json"
    write_solution(build_solution(example, {"j11": [ROW]}), path)
    data = read_json(path)
    data["jobs"][0][key] = value
    write_json(data, path)
    return example, path


@pytest.mark.parametrize("name", [["j11"], 7, "j99", "j12"])
def test_each_job_is_named_once(tmp_path, name):
    """Not a word, unknown, or there already."""
    example, path = changed(tmp_path, "name", name)
    with pytest.raises(InputError, match="must name each job of the instance once"):
        read_solution(path, example)


@pytest.mark.parametrize("rows", ["none", {}, [ROW, "row"], [[]]])
def test_assignments_are_a_list_of_rows(tmp_path, rows):
    example, path = changed(tmp_path, "assignments", rows)
    with pytest.raises(InputError, match=r"jobs\[0\].assignments: .*must be a list of objects"):
        read_solution(path, example)
