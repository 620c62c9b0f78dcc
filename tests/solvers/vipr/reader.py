"""A checker of VIPR files, written from the format's page alone (version 1.1).

It knows nothing of the package. Sections VAR, INT, OBJ, CON, RTP, SOL and DER; reasons asm, lin,
rnd, uns and sol. `check` raises `WrongProofError` for anything that the page does not allow.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple


class WrongProofError(Exception):
    """The file breaks a rule of the format, or a step does not follow."""


class Row(NamedTuple):
    """``terms.x sense side``, and the indices of the assumptions that it rests on."""

    sense: str
    side: Fraction
    terms: dict[int, Fraction]
    needs: frozenset[int]

    @property
    def is_absurd(self) -> bool:
        """0 >= positive, 0 <= negative, 0 = anything else."""
        wrong = {"G": self.side > 0, "L": self.side < 0, "E": self.side != 0}
        return not self.terms and wrong[self.sense]

    def dominates(self, other: Row) -> bool:
        """Whether the other row follows at once."""
        if self.is_absurd:
            return True
        if self.terms != other.terms or self.sense not in (other.sense, "E"):
            return False
        return {
            "G": self.side >= other.side, "L": self.side <= other.side,
            "E": self.side == other.side,
        }[other.sense]  # fmt: skip


def require(condition: object, text: str) -> None:
    """Refuse the file unless a condition holds."""
    if not condition:
        raise WrongProofError(text)


class Checker:
    """One file, read word by word."""

    def __init__(self, text: str) -> None:
        lines = [line for line in text.splitlines() if not line.startswith("%")]
        self.words = iter(" ".join(lines).split())
        self.rows: list[Row] = []

    def word(self, *expected: str) -> str:
        """The next word."""
        found = next(self.words, "")
        require(found and (not expected or found in expected), f"{found!r} is not {expected}")
        return found

    def whole(self) -> int:
        """The next word as an index or a count."""
        return int(self.word())

    def pairs(self, count: int | None = None) -> dict[int, Fraction]:
        """So many pairs of index and value."""
        count = self.whole() if count is None else count
        found = {self.whole(): Fraction(self.word()) for _ in range(count)}
        require(len(found) == count, "an index stands twice")
        return {index: value for index, value in found.items() if value}

    def check(self) -> tuple[Any, Any]:
        """Check everything; the range that is proven, or ("infeas", "infeas")."""
        self.word("VER")
        self.word("1.0", "1.1")
        self.word("VAR")
        names = [self.word() for _ in range(self.whole())]
        require(len(set(names)) == len(names), "variables' names")
        self.word("INT")
        self.integer = {self.whole() for _ in range(self.whole())}
        self.word("OBJ")
        self.sense = self.word("min", "max")
        self.objective = self.pairs()
        self.word("CON")
        count, _ = self.whole(), self.whole()
        for _ in range(count):
            self.rows.append(self.constraint())
        given = list(self.rows)
        self.word("RTP")
        low, high = self.claim()
        self.word("SOL")
        values = [self.solution(given) for _ in range(self.whole())]
        known = high if self.sense == "min" else low
        if known not in ("inf", "-inf", "infeas"):
            better = [v <= known if self.sense == "min" else v >= known for v in values]
            require(any(better), "no solution is as good as claimed")
        self.word("DER")
        for _ in range(self.whole()):
            self.derived()
        require(not next(self.words, ""), "words behind the last derivation")
        self.conclude(low, high)
        return low, high

    def constraint(self) -> Row:
        """A constraint in the format's form."""
        self.word()
        sense, side = self.word("E", "L", "G"), Fraction(self.word())
        first = self.word()
        terms = dict(self.objective) if first == "OBJ" else self.pairs(int(first))
        return Row(sense, side, terms, frozenset())

    def claim(self) -> tuple[Any, Any]:
        """What is to be proven."""
        if self.word("infeas", "range") == "infeas":
            return "infeas", "infeas"
        ends = self.word(), self.word()
        low, high = (end if end in ("-inf", "inf") else Fraction(end) for end in ends)
        return low, high

    def solution(self, given: list[Row]) -> Fraction:
        """A solution that obeys all constraints; its value."""
        self.word()
        point = self.pairs()
        for j in self.integer:
            require(point.get(j, Fraction()).denominator == 1, f"variable {j} must be whole")
        for index, row in enumerate(given):
            value = sum((a * point.get(j, 0) for j, a in row.terms.items()), Fraction())
            holds = {"G": value >= row.side, "L": value <= row.side, "E": value == row.side}
            require(holds[row.sense], f"the solution breaks constraint {index}")
        return sum((c * point.get(j, 0) for j, c in self.objective.items()), Fraction())

    def derived(self) -> None:
        """One derived constraint and its reason."""
        row = self.constraint()
        self.word("{")
        reason = self.word("asm", "lin", "rnd", "uns", "sol")
        index = len(self.rows)
        if reason == "asm":
            needs = frozenset({index})
        elif reason in ("lin", "rnd"):
            found = self.combination(self.pairs())
            found = self.rounded(found) if reason == "rnd" else found
            require(found.dominates(row), f"constraint {index} does not follow")
            needs = found.needs
        else:
            require(reason == "uns", "solutions in derivations are not read")
            needs = self.unsplit(row, [self.whole() for _ in range(4)])
        self.word("}")
        self.word()
        self.rows.append(row._replace(needs=needs))

    def combination(self, weights: dict[int, Fraction]) -> Row:
        """A suitable linear combination."""
        signs = set()
        terms: dict[int, Fraction] = {}
        side, needs = Fraction(), frozenset[int]()
        for index, weight in weights.items():
            require(0 <= index < len(self.rows), "a constraint that is not there yet")
            row = self.rows[index]
            signs.add({"G": 1, "E": 0, "L": -1}[row.sense] * (1 if weight > 0 else -1))
            side += weight * row.side
            needs |= row.needs
            for j, a in row.terms.items():
                terms[j] = terms.get(j, Fraction()) + weight * a
        require(signs <= {0, 1} or signs <= {0, -1}, "the combination is not suitable")
        sense = "G" if 1 in signs else "L" if -1 in signs else "E"
        return Row(sense, side, {j: a for j, a in terms.items() if a}, needs)

    def rounded(self, row: Row) -> Row:
        """A row over whole variables with whole coefficients, its side rounded."""
        whole = all(j in self.integer and a.denominator == 1 for j, a in row.terms.items())
        require(whole and row.sense != "E", "this cannot be rounded")
        return row._replace(
            side=Fraction((math.ceil if row.sense == "G" else math.floor)(row.side))
        )

    def unsplit(self, row: Row, indices: list[int]) -> frozenset[int]:
        """Two constraints that dominate a row, each under one side of a split."""
        require(all(0 <= i < len(self.rows) for i in indices), "a constraint that is not there yet")
        first, left, second, right = (self.rows[i] for i in indices)
        require(first.dominates(row) and second.dominates(row), "a side does not dominate")
        below, above = (left, right) if left.sense == "L" else (right, left)
        splits = (below.sense, above.sense) == ("L", "G") and below.terms == above.terms
        whole = all(j in self.integer and a.denominator == 1 for j, a in below.terms.items())
        adjacent = below.side.denominator == 1 and above.side == below.side + 1
        require(splits and whole and adjacent, "this is no split")
        return (first.needs - {indices[1]}) | (second.needs - {indices[3]})

    def conclude(self, low: Any, high: Any) -> None:
        """The last constraint proves the claim without assumptions."""
        last = self.rows[-1]
        require(not last.needs, "an assumption is left")
        if low == "infeas":
            require(last.is_absurd, "the last constraint is no absurdity")
            return
        sense, end = ("G", low) if self.sense == "min" else ("L", high)
        if end not in ("-inf", "inf"):
            claimed = Row(sense, end, self.objective, frozenset())
            require(last.dominates(claimed), "the last constraint is not the claim")


def check(text: str) -> tuple[Any, Any]:
    """Check a file's text; the range that it proves."""
    try:
        return Checker(text).check()
    except (ValueError, IndexError, KeyError, ZeroDivisionError) as error:
        raise WrongProofError(f"{type(error).__name__}: {error}") from None
