"""``hindsight``: the best schedule that a search finds among all jobs; no online algorithm."""

from __future__ import annotations

from hindsched.errors import InputError
from hindsched.instances.base import JobRecord
from hindsched.instances.gang.instance import GangInstance
from hindsched.online.protocol import NOTHING, Capabilities, Decision, Environment, OnlineAlgorithm
from hindsched.solutions.base import Assignment
from hindsched.solvers.families.gang.search import best_in_rounds


class Hindsight(OnlineAlgorithm):
    """Follow the best schedule found offline.

    Parameters
    ----------
    exchanges : int
        Exchanges of neighbouring jobs that the search tries, the same on every machine.
    """

    card = Capabilities(online=False, clairvoyant=True)

    def __init__(self, exchanges: int = 20_000) -> None:
        if exchanges < 0:
            raise InputError("set.exchanges", exchanges, "must be at least 0")
        self.exchanges = exchanges

    def start(self, environment: Environment) -> None:
        """Begin without a plan."""
        self._environment = environment
        self._rows: dict[int, dict[str, list[Assignment]]] = {}
        self._begins: list[int] = []

    def foresee(self, jobs: tuple[JobRecord, ...]) -> None:
        """Search the best schedule of all jobs."""
        instance = self._environment.cluster.with_jobs(jobs)
        assert isinstance(instance, GangInstance)
        if not jobs:
            return
        found = best_in_rounds(instance, self._environment.formulation, self.exchanges)
        for name, rows in found.assignments().items():
            for row in rows:
                self._rows.setdefault(row["from"], {}).setdefault(name, []).append(row)
        self._begins = sorted(self._rows, reverse=True)

    def step(self, slot: int, arrivals: tuple[JobRecord, ...]) -> Decision:
        """Give out what begins now."""
        if slot not in self._rows:
            return NOTHING
        self._begins.pop()
        return Decision(self._rows[slot])

    def wake_up(self) -> int | None:
        """The slot in which the next job begins."""
        return self._begins[-1] if self._begins else None
