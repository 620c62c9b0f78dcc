"""Python's collector of garbage rests while modules are loaded, and goes on as it was."""

import gc
import importlib
import sys

import pytest

from hindsched.collector import collector_at_rest
from hindsched.instances.base import family_module


def _fail_inside():
    with collector_at_rest():
        with collector_at_rest():
            assert not gc.isenabled()
        assert not gc.isenabled()
        raise ValueError("wrong")


def test_no_garbage_is_collected_inside_and_it_is_again_after_an_error():
    assert gc.isenabled()
    with pytest.raises(ValueError, match="wrong"):
        _fail_inside()
    assert gc.isenabled()


def test_who_has_switched_it_off_finds_it_off():
    gc.disable()
    try:
        with collector_at_rest():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_it_rests_while_a_family_is_loaded_and_not_when_it_is_there(monkeypatch):
    name = "hindsched.online.gang.theorem"
    found = []

    def note(module):
        found.append((module, gc.isenabled()))

    monkeypatch.setattr(importlib, "import_module", note)
    monkeypatch.delitem(sys.modules, name, raising=False)
    family_module("online", "gang", "theorem")
    monkeypatch.setitem(sys.modules, name, gc)
    family_module("online", "gang", "theorem")
    assert found == [(name, False), (name, True)]
