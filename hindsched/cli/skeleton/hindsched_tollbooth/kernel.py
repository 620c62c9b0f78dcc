"""tollbooth (max): the tolls of the cars that pass, exactly.

A car (1) holds a booth once, from its arrival on and through by the horizon; (2) a booth holds one.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Any, ClassVar

from hindsched.kernel import reading, trees
from hindsched.kernel.exact import Data, Interval, point
from hindsched.kernel.problem import FamilyProblem
from hindsched.kernel.reading import integer, require
from hindsched.kernel.verdict import Broken, Verdict, given_up, jobs_of, rows_of

ROW_KEYS = {"from", "to", "workers"}


class Problem(FamilyProblem):
    """(1) and (2) of an instance."""

    sense = "max"
    formulations: ClassVar = {"standard": "standard"}

    def __init__(self, instance: Data, formulation: str) -> None:
        self.horizon = integer(instance["horizon"], 1, "horizon")
        self.booths = integer(instance["booths"], 1, "booths")
        names = reading.names(instance["jobs"], "jobs")
        self.cars = dict(zip(names, map(_car, instance["jobs"]), strict=True))

    def worth(self, ends: Mapping[str, int | None]) -> Interval:
        """Tolls of the cars that have passed."""
        return point(sum(self.cars[name][2] for name, end in ends.items() if end is not None))

    def check(self, solution: Data) -> Verdict:
        """Check (1) and (2), and the objective."""
        broken, ends = Broken(), dict[str, int | None]()
        given_up(solution, ())
        for name, given in jobs_of(solution, self.cars).items():
            arrival, length, _ = self.cars[name]
            rows = rows_of(given, ROW_KEYS, ROW_KEYS)
            broken.note(len(rows) - 1, "(1)", name)
            for first, last, row in rows:
                require(row["workers"] == {"booth": 1}, f"job {name}: workers must be one booth")
                broken.note(arrival - first, "(1)", name, first, last)
                broken.note(last - self.horizon, "(1)", name, first, last)
                broken.note(abs(last + 1 - first - length), "(1)", name, first, last)
                broken.loads["(2)", "booth", "lane", self.booths].append((first, last, 1, name))
            ends[name] = rows[-1][1] if rows else None
            broken.completion(given, ends[name])
        return broken.verdict(self.worth(ends))

    def bound(self, certificate: Data) -> Interval:
        """Booths x sum of the prices + the sum of every car's best toll less the prices it pays."""
        cars, horizon = list(self.cars.values()), self.horizon
        trees.layout(certificate, ("servers",))

        def price(prices: Any) -> tuple[Interval, Any]:
            rows = reading.price_rows(prices, {"booths": [("server", ("booth",))]}, horizon)
            paid = [*accumulate(rows["booths"].get(("booth",), [0] * (horizon + 1)))]

            def respond(position: int, limits: trees.Limits) -> Interval | None:
                arrival, length, toll = cars[position]
                least, most = limits.get(("completion",), trees.ALL)
                ends = range(max(least, arrival + length - 1), min(most, horizon) + 1)
                reading.spend(10 * len(ends))
                values = [toll - (paid[end] - paid[end - length]) for end in ends]
                values += [0] if trees.keeps_outside(limits) else []
                return point(max(values)) if values else None

            return point(self.booths * paid[-1]), respond

        return trees.certificate_bound(certificate, price, {"completion": ()}, list(self.cars))


def _car(job: Data) -> tuple[int, int, Any]:
    """Arrival, length and toll."""
    here = f"job {job['name']}"
    return (
        integer(job["arrival"], 1, here),
        integer(job["length"], 1, here),
        reading.number(job["toll"], here),
    )
