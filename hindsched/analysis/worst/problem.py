"""What is searched for: the worst ratio of an algorithm over a space of instances."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

from hindsched.analysis.plan import Contender, own_settings
from hindsched.errors import InputError
from hindsched.instances.base import Instance
from hindsched.instances.search.space import SearchSpace, copied
from hindsched.json_types import Keywords
from hindsched.online.protocol import OnlineAlgorithm
from hindsched.online.registry import algorithms, build_algorithm, build_from, name_of
from hindsched.online.simulator import SimulationResult, simulate

EXACT_WORK = 1_000
"""Work of a candidate's longest solve: a limit that no clock sets, so that each has one score."""


@dataclass(frozen=True)
class Runner:
    """An algorithm and its settings.

    Parameters
    ----------
    family : str
        The family's word.
    contender : str, class or OnlineAlgorithm
        As for ``compare``.
    settings : mapping
        Its settings.
    """

    family: str
    contender: Contender
    settings: Keywords = field(default_factory=dict)

    @classmethod
    def of(cls, family: str, contender: Contender, settings: Keywords) -> Runner:
        """The algorithm with those of the settings that it has, built once to check them."""
        if isinstance(contender, OnlineAlgorithm):
            return cls(family, contender)
        made = cls(family, contender, own_settings(family, contender, settings))
        made.build()
        return made

    @property
    def name(self) -> str:
        """Its name."""
        if isinstance(self.contender, OnlineAlgorithm):
            return name_of(self.contender)
        return self.contender if isinstance(self.contender, str) else self.contender.__name__

    def build(self) -> OnlineAlgorithm:
        """A new one, or a copy of the given object."""
        if isinstance(self.contender, OnlineAlgorithm):
            return copy.deepcopy(self.contender)
        if isinstance(self.contender, str):
            return build_algorithm(self.family, self.contender, self.settings)
        return build_from(self.contender, self.name, self.settings)

    @property
    def is_registered(self) -> bool:
        """Whether it is one of the family's own."""
        return isinstance(self.contender, str) and self.contender in algorithms(self.family)

    @property
    def is_randomised(self) -> bool:
        """Whether its seed can change a decision."""
        return self.build().randomised

    def run(self, instance: Instance, seed: int, formulation: str | None) -> SimulationResult:
        """Run it through the simulator."""
        if isinstance(self.contender, str):  # a name has a line of its own in every result
            settings = dict(self.settings)
            return simulate(
                instance, self.contender, seed=seed, settings=settings, formulation=formulation
            )
        return simulate(instance, self.build(), seed=seed, formulation=formulation)


@dataclass(frozen=True)
class Problem:
    """A search: which algorithm, against what, over which instances.

    Parameters
    ----------
    space : SearchSpace
        The instances.
    algorithm : Runner
        Whose worst ratio is searched for.
    against : Runner, optional
        Another algorithm in place of the optimum.
    formulation : str
        The family's problem.
    seeds : int
        Runs of a randomised algorithm on each candidate.
    exact_work : int
        Work of a candidate's longest solve.
    """

    space: SearchSpace
    algorithm: Runner
    against: Runner | None
    formulation: str
    seeds: int = 1
    exact_work: int = EXACT_WORK

    @classmethod
    def of(
        cls,
        space: SearchSpace,
        algorithm: Contender,
        against: Contender | None = None,
        *,
        settings: Keywords | None = None,
        formulation: str | None = None,
        seeds: int = 5,
    ) -> Problem:
        """Build and check a problem.

        Raises
        ------
        InputError
            For an unknown algorithm, setting or formulation.
        """
        family = space.family
        runner = Runner.of(family, algorithm, settings or {})
        other = None if against is None else Runner.of(family, against, settings or {})
        known = {*runner.settings, *(other.settings if other is not None else ())}
        for name, value in (settings or {}).items():
            if name not in known:
                rule = f"must be a range ({', '.join(space.names())}) or a setting of {runner.name}"
                raise InputError(f"set.{name}", value, rule)
        if seeds < 1:
            raise InputError("seeds", seeds, "must be at least 1")
        first = space.instance(space.normal(copied(space.base)))
        randomised = runner.is_randomised or (other is not None and other.is_randomised)
        wanted = first.check_formulation(formulation or space.formulation)
        return cls(space, runner, other, wanted, seeds if randomised else 1)

    def runs(self, runner: Runner, instance: Instance, seeds: range) -> list[SimulationResult]:
        """Runs of an algorithm, one a seed; one in all if it is not randomised."""
        chosen = seeds if len(seeds) > 1 and runner.is_randomised else seeds[:1]
        return [runner.run(instance, seed, self.formulation) for seed in chosen]
