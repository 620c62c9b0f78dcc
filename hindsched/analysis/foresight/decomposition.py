"""Trees beyond one program: the scenarios' own programs as mpi-sppy asks for them.

mpi-sppy (extra ``foresight``) decomposes by scenarios: progressive hedging, Lagrangian bounds, on
one machine or by MPI. It wants a model by name, its place in a tree of nodes of equal depth, and in
every node the same variables: these are the decisions of `models.futures`, copied into
``decided[node, k]``, 0 where a scenario has no such decision. Its multipliers, times the
probabilities, are own terms of a certificate (``certify(..., own=...)``).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from typing import Any

import pyomo.environ as pyo

from hindsched.models.algebra import Model
from hindsched.models.futures import Decisions, Futures, Label, scenario_programs

Members = tuple[int, ...]


class Scenarios:
    """Any Pyomo models with decisions, one a scenario, as mpi-sppy asks for them.

    Arguments are as of `extensive_form`; the models are not copied: they get ``decided``. `names`
    are those of the scenarios in the order of the tree, `nodes` those of the tree, leaves too.

    Examples
    --------
    ::

        given = Scenarios(models, decisions, [1 / 3] * 3)
        form = mpisppy.opt.ef.ExtensiveForm(
            {"solver": "appsi_highs"}, given.names, given.create, all_nodenames=given.nodes
        )
    """

    def __init__(
        self,
        models: Sequence[Model],
        decisions: Sequence[Decisions],
        probabilities: Sequence[float],
    ) -> None:
        self.models, self.decisions, self.probabilities = models, decisions, probabilities
        everyone = tuple(range(len(models)))
        labels: dict[Members, list[Label | None]] = {everyone: []}
        for label in dict.fromkeys(label for known in decisions for label in known):
            if len(label[0]) > 1:
                labels.setdefault(label[0], []).append(label)
        chains = [sorted((m for m in labels if s in m), key=len, reverse=True) for s in everyone]
        depth = max(map(len, chains))
        for s, chain in enumerate(chains):  # of equal depth, the scenario's own nodes at the end
            chain += [(s,)] * (depth + 1 - len(chain))
        self._order = sorted(everyone, key=lambda s: chains[s])
        self.names = [f"scenario{at}" for at in everyone]
        named: dict[tuple[Members, ...], str] = {}
        for chain in (chains[s] for s in self._order):
            for level in range(1, depth + 2):
                above = tuple(chain[: level - 1])
                siblings = sum(other[:-1] == above for other in named if other)
                own = f"{named[above]}_{siblings}" if above else "ROOT"
                named.setdefault(tuple(chain[:level]), own)
        self.nodes = list(named.values()) if depth > 1 else None
        self._paths = [
            [(named[tuple(chain[:level])], chain[level - 1]) for level in range(1, depth + 1)]
            for chain in chains
        ]
        self._labels: dict[str, list[Label | None]] = {}
        for nodes in zip(*self._paths, strict=True):  # of a level must have as many; 0 is the rest
            most = max(1, *(len(labels.get(members, ())) for _, members in nodes))
            for name, members in nodes:
                known = labels.get(members, [])
                self._labels[name] = [*known, *[None] * (most - len(known))]

    def create(self, name: str, **_: object) -> Model:
        """The model of a scenario: mpi-sppy's ``scenario_creator``."""
        from mpisppy.scenario_tree import ScenarioNode

        s = self._order[self.names.index(name)]
        m, own, path = self.models[s], self.decisions[s], self._paths[s]
        keys = {node: [(node, k) for k in range(len(self._labels[node]))] for node, _ in path}

        def copied(m: Model, node: str, k: int) -> Any:
            label = self._labels[node][k]
            return m.decided[node, k] == (0.0 if label is None else own.get(label, 0.0))

        m.decided = pyo.Var([key for listed in keys.values() for key in listed])
        m.copied = pyo.Constraint(m.decided.index_set(), rule=copied)
        objective = next(m.component_data_objects(pyo.Objective, active=True))
        m._mpisppy_node_list, above, before = [], None, 1.0
        for stage, (node, members) in enumerate(path, 1):
            share = fsum(self.probabilities[other] for other in members)
            cost = objective.expr if stage == 1 else 0.0
            variables = [m.decided[key] for key in keys[node]]
            m._mpisppy_node_list.append(
                ScenarioNode(node, share / before, stage, cost, variables, m, parent_name=above)
            )
            above, before = node, share
        m._mpisppy_probability = self.probabilities[s]
        return m

    def multipliers(self, solver: Any) -> list[dict[Label, float]]:
        """What a solver of mpi-sppy has found, times the probability, by scenario and label."""
        found: list[dict[Label, float]] = [{} for _ in self.models]
        for name, scenario in solver.local_scenarios.items():
            s = self._order[self.names.index(name)]
            for key, variable in scenario._mpisppy_data.nonant_indices.items():
                node, k = variable.index()
                if (label := self._labels[node][k]) is not None:
                    weight = float(pyo.value(scenario._mpisppy_model.W[key]))
                    found[s][label] = self.probabilities[s] * weight
        return found


def scenarios_of(futures: Futures, policies: str, formulation: str | None = None) -> Scenarios:
    """A family's scenarios as mpi-sppy asks for them; arguments as of `build_extensive`."""
    programs, decisions = scenario_programs(futures, policies, formulation)
    return Scenarios([own.model for own in programs], decisions, futures.probabilities)
