"""A proof of an instance's program in VIPR's format: from the instance to the file's text."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from hindsched.errors import InputError, SolveFailed
from hindsched.instances.base import Instance
from hindsched.json_types import JsonObject
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.door.standard_form import TriviallyInfeasibleError, compile_program
from hindsched.solvers.model.offline import model as build_model
from hindsched.solvers.vipr.branching import Branching, Tree
from hindsched.solvers.vipr.exact_program import ExactProgram
from hindsched.solvers.vipr.file import ViprFile, proven_bound

MOST_NONZEROS = 200_000
"""Larger programs are refused: their proofs would take hours and gigabytes."""
MOST_NODES, DEFAULT_SECONDS = 2_000, 60.0
SHARE_OF_SOLVER = 0.4
"""Share of the time in which a solver looks for a solution to begin with."""


@dataclass(frozen=True)
class ViprProof:
    """What a file of VIPR proves.

    Parameters
    ----------
    text : str
        The file.
    bound, objective : Fraction or None
        Proven bound on the program's optimum, and value of the solution in the file, in the
        program's own sense. A bound of None: the program has no solution.
    columns, rows, nodes : int
        Size of the program and of the tree.
    stopped : str
        ``closed``, or what stopped the search: ``nodes``, ``time``.
    """

    text: str
    bound: Fraction | None
    objective: Fraction | None
    columns: int
    rows: int
    nodes: int
    stopped: str

    def to_dict(self) -> JsonObject:
        """JSON data, numbers rounded to doubles."""
        found = {key: value for key, value in vars(self).items() if key != "text"}
        return {k: float(v) if isinstance(v, Fraction) else v for k, v in found.items()}


def vipr_proof(
    instance: Instance,
    formulation: str | None = None,
    *,
    form: str | None = None,
    relax: bool = False,
    time_limit: float = DEFAULT_SECONDS,
    most_nodes: int = MOST_NODES,
) -> ViprProof:
    """Prove a bound on an instance's program, in VIPR's format.

    What is proven is a fact on the program as it is written in the file: that this program is the
    instance's problem is not part of the proof.

    Parameters
    ----------
    instance : Instance
        The instance.
    formulation, form : str, optional
        Which program, as for `hindsched.model`.
    relax : bool
        The linear relaxation only: one combination of rows.
    time_limit : float
        Seconds.
    most_nodes : int
        Nodes of the tree.

    Raises
    ------
    InputError
        For a program that is too large.
    SolveFailed
        If nothing could be proven.

    Examples
    --------
    >>> import hindsched as hs
    >>> proof = vipr_proof(hs.generate("edgecloud", "small", jobs=1), relax=True)
    >>> proof.text.splitlines()[1], proof.stopped
    ('VER 1.1', 'closed')
    """
    options = SolveOptions(time_limit=SHARE_OF_SOLVER * time_limit)
    held = build_model(instance, form=form, formulation=formulation, relax=relax)
    model = held.program.model
    try:
        program = compile_program(model)
    except TriviallyInfeasibleError as error:
        raise SolveFailed(f"{error}: no point obeys it, and there is nothing to prove") from None
    if program.matrix.nnz > MOST_NONZEROS:
        rule = f"must have at most {MOST_NONZEROS} coefficients for a proof in VIPR's format"
        raise InputError("program", program.matrix.nnz, rule)
    start = None
    if not relax:
        found = solve_program(model, options)
        start = [column.value for column in program.columns] if found.has_point else None
    exact = ExactProgram(program)
    tree: Tree = Branching(program, exact).search(start, most_nodes, time_limit)
    if tree.root.proof is None:
        raise SolveFailed("no bound follows from the relaxation's duals")
    bound = proven_bound(tree.root)
    comment = f"{held.program.title}, sha256 {instance.sha256()}"
    return ViprProof(
        text=ViprFile(exact, tree, comment).text(),
        bound=None if bound is None else exact.sign * bound,
        objective=None if tree.value is None else exact.sign * tree.value,
        columns=len(exact.names),
        rows=len(exact.rows),
        nodes=tree.nodes,
        stopped=tree.stopped,
    )
