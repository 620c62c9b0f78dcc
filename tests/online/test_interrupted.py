"""Ctrl-C while an online algorithm solves: the solve ends with what it has, and so does the run."""

import os
import signal

import pytest

from hindsched.instances.catalogue import known_instance
from hindsched.online.oasis import algorithms
from hindsched.online.protocol import NOTHING, OnlineAlgorithm
from hindsched.online.simulator import simulate
from hindsched.solvers.door.interrupt import catch_interrupt
from hindsched.solvers.families.oasis import rest


def press_ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)


class Solves(OnlineAlgorithm):
    """Decides nothing after a solve that Ctrl-C ends in a slot."""

    def __init__(self, when):
        self.when, self.last = when, 0

    def start(self, environment):
        pass

    def step(self, slot, arrivals):
        self.last = slot
        with catch_interrupt():
            if slot == self.when:
                press_ctrl_c()
        return NOTHING


@pytest.fixture(scope="module")
def instance():
    return known_instance("oasis-t10-i10-h25-s0")


def test_a_run_ends_with_the_solve_that_was_interrupted(instance):
    second = sorted({job.arrival for job in instance.jobs})[1]
    algorithm = Solves(second)
    with pytest.raises(KeyboardInterrupt):
        simulate(instance, algorithm)
    assert algorithm.last == second


def test_an_interrupt_before_the_run_does_not_end_it(instance):
    Solves(1).step(1, ())
    assert simulate(instance, Solves(None)).solution.is_feasible()


def test_all_solves_of_an_oasis_plan_hear_one_interrupt(instance, monkeypatch):
    heard = []

    def milp(*given, **named):
        with catch_interrupt():
            press_ctrl_c()
        with catch_interrupt() as later:
            heard.append(later.is_set())
        return solve(*given, **named)

    solve = rest.milp
    monkeypatch.setattr(rest, "milp", milp)
    with pytest.raises(KeyboardInterrupt):
        simulate(instance, algorithms.OasisReoptimise())
    assert heard == [True]
