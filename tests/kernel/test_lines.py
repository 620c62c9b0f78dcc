"""The page's table of lines that must be right for a certificate to be sound."""

import importlib.util
import re
from pathlib import Path

import pytest

from hindsched.instances.base import FAMILIES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "certificates.md").read_text()


@pytest.fixture(scope="module")
def benchmark_of_the_kernel():
    spec = importlib.util.spec_from_file_location("kernel_table", ROOT / "benchmarks/kernel.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("family", FAMILIES)
def test_no_family_needs_more_lines_than_the_page_says(family, benchmark_of_the_kernel):
    stated = int(re.search(rf"^\| {family} \| (\d+) \|", PAGE, re.MULTILINE)[1])
    found = benchmark_of_the_kernel.lines_of(family)
    assert 0.9 * stated <= found <= stated


def test_the_whole_kernel_has_no_more_lines_than_the_page_says(benchmark_of_the_kernel):
    stated = int(re.search(r"kernel of all six families has (\d+)", PAGE)[1])
    found = sum(
        map(benchmark_of_the_kernel.code_lines, benchmark_of_the_kernel.KERNEL.glob("*.py"))
    )
    assert 0.98 * stated <= found <= stated


def test_lines_are_those_that_run(benchmark_of_the_kernel, tmp_path):
    path = tmp_path / "code.py"
    path.write_text(
        '"""Text."""\n\n# word\nx = [\n    1,\n]\n\n\ndef f():\n    """Text."""\n    return x\n'
    )
    assert benchmark_of_the_kernel.code_lines(path) == 5
