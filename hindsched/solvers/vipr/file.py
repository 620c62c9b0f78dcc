"""Writes a proof as a file of VIPR, which programs that know nothing of this package check.

The format is `cert_spec_v1_1.md` of the public repository scipopt/vipr (Cheung, Gleixner, Steffy,
*Verifying integer programming results*, IPCO 2017). A bound is one linear combination of the
constraints (``lin``); a split of a tree has both of its sides as assumptions (``asm``) and takes
them back where it joins their bounds (``uns``).
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from hindsched.solvers.vipr.branching import Node, Tree, assumption
from hindsched.solvers.vipr.exact_program import Constraint, ExactProgram, Proof

ABSURD = None
"""Bound of a part without solutions: ``0 >= 1``."""


def proven_bound(node: Node) -> Fraction | None:
    """Bound of a tree on the minimised objective: that of its worst part; None: no solution."""
    if not node.children:
        assert node.proof is not None
        return ABSURD if node.is_empty else node.proof.bound
    bounds = [bound for child in node.children if (bound := proven_bound(child)) is not None]
    return min(bounds, default=None)


class ViprFile:
    """The lines of one proof.

    Parameters
    ----------
    program : ExactProgram
        The program.
    tree : Tree
        What was found of it.
    comment : str
        What it is the program of.
    """

    def __init__(self, program: ExactProgram, tree: Tree, comment: str) -> None:
        self.program, self.tree = program, tree
        self.comment = " ".join(comment.split())
        self.derived: list[str] = []

    def text(self) -> str:
        """The file."""
        return "\n".join([*self._problem(), *self._claims(), *self._derivations(), ""])

    def _problem(self) -> Iterator[str]:
        """Variables, which are whole, objective and constraints."""
        program = self.program
        yield f"% {self.comment}"
        yield "VER 1.1"
        yield f"VAR {len(program.names)}"
        yield from program.names
        whole = [str(j) for j, is_whole in enumerate(program.integer) if is_whole]
        yield f"INT {len(whole)}"
        yield " ".join(whole)
        yield f"OBJ {'min' if program.sign > 0 else 'max'}"
        yield terms({j: program.sign * cost for j, cost in program.cost.items()})
        yield f"CON {len(program.constraints)} {program.num_bounds}"
        yield from map(line, program.constraints)

    def _claims(self) -> Iterator[str]:
        """What is proven: a range of the optimum, or that there is no solution."""
        bound, tree = proven_bound(self.tree.root), self.tree
        if bound is None:
            yield "RTP infeas"
            yield "SOL 0"
            return
        sign = self.program.sign
        known = None if tree.value is None else sign * tree.value
        low, high = (sign * bound, known) if sign > 0 else (known, sign * bound)
        yield f"RTP range {'-inf' if low is None else low} {'inf' if high is None else high}"
        if tree.point is None:
            yield "SOL 0"
        else:
            yield "SOL 1"
            yield f"best {terms({j: x for j, x in enumerate(tree.point) if x})}"

    def _derivations(self) -> Iterator[str]:
        """One derived constraint a line, the tree's parts before the whole."""
        self.first = len(self.program.constraints)
        self._derive(self.tree.root, {})
        yield f"DER {len(self.derived)}"
        yield from self.derived

    def _derive(self, node: Node, known: dict[tuple[int, str, int], int]) -> int:
        """Write what is proven of a node; `known` has its assumptions. Its constraint's index."""
        if not node.children:
            assert node.proof is not None
            bound = None if node.is_empty else node.proof.bound
            return self._add(bound, self._combination(node.proof, known, node.is_empty))
        j, k = node.column, node.split
        parts = []
        for child, sense, side in zip(node.children, "LG", (k, k + 1), strict=True):
            key = assumption(j, sense, side)
            index = self.first + len(self.derived)
            name = f"a{index}"
            assumed = Constraint(name, sense, Fraction(side), {j: Fraction(1)})
            self.derived.append(f"{line(assumed)} {{ asm }} -1")
            parts += [self._derive(child, {**known, key: index}), index]
        return self._add(proven_bound(node), f"uns {' '.join(map(str, parts))}")

    def _combination(
        self, proof: Proof, known: dict[tuple[int, str, int], int], is_empty: bool
    ) -> str:
        sign = 1 if is_empty else self.program.sign
        weights = {
            known[index] if isinstance(index, tuple) else index: sign * weight
            for index, weight in proof.weights.items()
        }
        return f"lin {terms(weights)}"

    def _add(self, bound: Fraction | None, reason: str) -> int:
        index, sign = self.first + len(self.derived), self.program.sign
        what = "G 1 0" if bound is None else f"{'G' if sign > 0 else 'L'} {sign * bound} OBJ"
        self.derived.append(f"d{index} {what} {{ {reason} }} -1")
        return index


def line(constraint: Constraint) -> str:
    """A constraint as the format has it."""
    return f"{constraint.name} {constraint.sense} {constraint.side} {terms(constraint.terms)}"


def terms(values: dict[int, Fraction] | object) -> str:
    """How many pairs, and the pairs of index and value."""
    assert isinstance(values, dict)
    return " ".join([str(len(values)), *(f"{j} {value}" for j, value in sorted(values.items()))])
