"""``reoptimise`` of oasis: what is left is an instance of its own, whose optimum is the plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from hindsched.instances.oasis.instance import OasisInstance
from hindsched.online.engines import reoptimise
from hindsched.online.protocol import Capabilities
from hindsched.solutions.base import build_solution
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import within_gap
from hindsched.solvers.families.oasis.rest import rest_of, rows_from, solve_rest

WORK_A_NODE = 10
"""Units of work that a solve may take for each of `nodes`: conflicts and leaves are work too."""


class Reoptimise(reoptimise.Reoptimise):
    """Solve what is left at each arrival, by the program of ends, and follow its plan.

    Parameters
    ----------
    nodes : int
        What a solve may take, in nodes of branch and bound with the work that goes with them: the
        result does not depend on the machine. A limit reached keeps the best plan found and is
        counted in the report.
    gap : float
        Relative gap at which a solve stops.
    """

    card = Capabilities(may_give_up=True)

    solver_options: ClassVar[Mapping[str, object]] = {
        "mip_allow_cut_separation_at_nodes": False,
        "mip_allow_restart": False,
        "mip_detect_symmetry": False,
        "mip_heuristic_effort": 0.0,
        "mip_heuristic_run_feasibility_jump": False,
        "mip_heuristic_run_rens": False,
        "mip_heuristic_run_rins": False,
        "mip_heuristic_run_root_reduced_cost": False,
    }
    """A program of a few dozen binaries that has a good start takes its time in heuristics."""

    def _plan_again(self, slot: int) -> None:
        """Solve what is left; the start keeps the present plan and adds the new jobs."""
        rolling = self._rolling
        rolling.advance(slot)
        known = rolling.instance
        assert isinstance(known, OasisInstance)
        rest = rest_of(known, rolling.commitments())
        self._plan = {name: rows_from(rows, slot) for name, rows in self._plan.items()}
        start = self._extended_plan(rest)
        if start is None:
            start = build_solution(rest, {}, rolling.formulation)
        options = SolveOptions(gap=self.gap, threads=1, solver_options=dict(self.solver_options))
        found = solve_rest(rest, start, options, WORK_A_NODE * self.nodes)
        best = found.solution or start
        self._counts["solves"] += 1
        closed = within_gap(best.objective(), found.bound, self.gap)
        self._counts["limits_reached"] += not closed
        self._plan = best.assignments()
