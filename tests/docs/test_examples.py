"""Every public name has an example in its docstring, and the example runs."""

import doctest
import inspect

import pytest

import hindsched as hs

NAMES = [name for name in hs.__all__ if name != "plot"]
NAMES += [f"plot.{name}" for name in hs.plot.__all__]


@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_a_public_name_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, _, picture = name.rpartition("plot.")
    value = getattr(hs.plot, picture) if "." in name else getattr(hs, name)
    module = inspect.getmodule(value)
    found = doctest.DocTestFinder(recurse=False).find(value, name, globs=dict(vars(module)))
    examples = [example for test in found for example in test.examples]
    assert examples, f"{name} has no example"
    assert not any(doctest.SKIP in example.options for example in examples)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    failures = sum(runner.run(test, out=said.append).failed for test in found)
    assert not failures, "".join(said)
