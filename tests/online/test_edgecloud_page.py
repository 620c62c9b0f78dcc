"""A row of the table of docs/problems/edgecloud.md on sending everything to the cloud."""

from __future__ import annotations

from pathlib import Path

from hindsched.instances.edgecloud.generator import generate
from hindsched.online.simulator import simulate

PAGE = (Path(__file__).parents[2] / "docs/problems/edgecloud.md").read_text()
COLUMNS = ("all-cloud", "edgecloud", "edgecloud-marginal", "edgecloud-escape")


def test_totals():
    (line,) = (row for row in PAGE.splitlines() if row.startswith("| minibatch times x 0.05 | 0 |"))
    printed = [int(cell.replace(",", "")) for cell in line.split("|")[3:7]]
    instance = generate("paper", 0, minibatch_scale=0.05)
    assert [round(simulate(instance, name).objective) for name in COLUMNS] == printed
