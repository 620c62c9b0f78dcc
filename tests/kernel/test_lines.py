"""The page's table of lines that must be right for a certificate to be sound."""

import re

import pytest

from hindsched.instances.base import FAMILIES
from tests.scripts import ROOT, script

PAGE = (ROOT / "docs/reference/certificates.md").read_text()


@pytest.fixture(scope="module")
def benchmark_of_the_kernel():
    return script("kernel")


def stated(family):
    """Lines on the page: that must be right for a certificate, with a solution, in all files."""
    cells = re.search(rf"^\| {family} \| (\d+) \| (\d+) \| (\d+) \|", PAGE, re.MULTILINE)
    return tuple(map(int, cells.groups()))


@pytest.mark.parametrize("family", FAMILIES)
def test_no_family_needs_more_lines_than_the_page_says(family, benchmark_of_the_kernel):
    alone, both, files = stated(family)
    found = benchmark_of_the_kernel.most_entered(family, instances=2)
    assert found[0] <= alone <= 800
    assert found[1] <= both
    assert benchmark_of_the_kernel.lines_of(family) == files


def test_the_whole_kernel_has_no_more_lines_than_the_page_says(benchmark_of_the_kernel):
    whole = int(re.search(r"kernel of all six families has (\d+)", PAGE)[1])
    files = benchmark_of_the_kernel.KERNEL.glob("*.py")
    found = sum(len(benchmark_of_the_kernel.code_lines(path)) for path in files)
    assert 0.98 * whole <= found <= whole
