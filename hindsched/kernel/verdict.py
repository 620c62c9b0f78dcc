"""What is said of a schedule: broken rules by job, slots and server; and what every check needs."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

from .exact import Data, Interval
from .reading import RefusedFile, names, require, span

Stretch = tuple[int, int, Any]  # first slot, last slot, height
Load = tuple[str, str, str, Any]
"""The equation that is a limit, server, resource, and the limit; None if there is none."""
Loads = defaultdict[Load, list[tuple[int, int, Any, str]]]
"""First slot, last slot, height and job of all that adds up on a load."""
Row = tuple[int, int, Data]  # first slot, last slot, and the row
JOB_KEYS = {"name", "completion", "assignments"}


@dataclass(frozen=True)
class Violation:
    """A broken rule.

    Parameters
    ----------
    rule : str
        The paper's equation, ``"(4)"``, or the rule in words where no equation has it.
    job : str
        The job; of a capacity, the one that begins last of those that use it.
    server, resource : str
        Where a capacity is exceeded and of what; empty where none is.
    first, last : int
        Slots, both inclusive; 0 where the rule is one of the job as a whole.
    amount : Fraction or int
        By how much, in the constraint's own unit, exactly.
    detail : str
        What the job does that it must not, as the end of a sentence.
    """

    rule: str
    job: str
    server: str = ""
    resource: str = ""
    first: int = 0
    last: int = 0
    amount: Fraction | int = 1
    detail: str = field(default="", compare=False)

    @property
    def where(self) -> str:
        """Job, slots and server in words."""
        slots = f"slots {self.first}..{self.last}" if self.last > self.first else ""
        slots = slots or (f"slot {self.first}" if self.first else "")
        parts = (f"job {self.job}" if self.job else "", f"in {slots}" if slots else "",
                 f"on server {self.server}" if self.server else "")  # fmt: skip
        return " ".join(part for part in parts if part)

    def __str__(self) -> str:
        return f"{self.rule}: {self.where} {self.detail}".rstrip()


@dataclass(frozen=True)
class Verdict:
    """What the judge says of a schedule.

    Parameters
    ----------
    violations : tuple of Violation
        Every broken rule, the earliest slot first.
    value : Interval
        What the decisions amount to, also where they break a rule.
    notes : sequence of (str, Fraction)
        What else is to be said: what each tenant pays and gains.
    """

    violations: tuple[Violation, ...]
    value: Interval
    notes: Sequence[tuple[str, Fraction]] = ()

    @property
    def feasible(self) -> bool:
        """Whether no rule is broken."""
        return not self.violations

    @property
    def objective(self) -> Interval | None:
        """The objective, None of what is infeasible."""
        return self.value if self.feasible else None


def _shown_number(value: Any) -> str:
    """A value for people: numbers of six digits."""
    is_number = isinstance(value, int | Fraction) and -(10**300) < value < 10**300
    return f"{float(value):.6g}" if is_number else str(value)


class Broken:
    """Collects what breaks a rule; there is no tolerance."""

    def __init__(self) -> None:
        self.violations: list[Violation] = []
        self.loads: Loads = defaultdict(list)

    def note(
        self, excess: Any, rule: str, job: str, first: int = 0, last: int = 0,
        server: str = "", resource: str = "", says: tuple[Any, ...] = (),
    ) -> None:  # fmt: skip
        """Add a violation where the excess is above 0; a template and what stands in it say it."""
        if excess > 0:
            amount = int(excess) if isinstance(excess, bool) else excess
            template, *values = says or (f"is off by {{}} {resource}".rstrip(), amount)
            detail = template.format(*map(_shown_number, values))
            last = max(first, last)
            self.violations.append(
                Violation(rule, job, server, resource, first, last, amount, detail)
            )

    def completion(self, given: Data, end: int | None) -> None:
        """Note where a completion is stated that is not that of the rows."""
        stated = given.get("completion")
        if "completion" in given and stated != end:
            apart = 1 if stated is None or end is None else abs(stated - end)
            says = "states the completion {}, which is {} by its rows", stated, end
            self.note(apart, "completion", given["name"], end or 0, says=says)

    def verdict(self, value: Interval, notes: Sequence[tuple[str, Fraction]] = ()) -> Verdict:
        """All that was noted, and where loads are above their limits."""
        for (rule, server, resource, limit), parts in self.loads.items():
            over = list[list[Any]]()
            if limit is None or sum(max(0, height) for _, _, height, _ in parts) <= limit:
                continue
            for first, last, height in levels(part[:3] for part in parts):
                if over and over[-1][1:] == [first - 1, height]:
                    over[-1][1] = last
                elif height > limit:
                    over.append([first, last, height])
            begun = sorted(parts, key=lambda part: part[0])
            for first, last, height in over:
                at = bisect_right(begun, last, key=lambda part: part[0]) - 1
                while begun[at][1] < first or not begun[at][2]:
                    at -= 1
                says = "lacks {} {}: {} used, at most {}", height - limit, resource, height, limit
                self.note(height - limit, rule, begun[at][3], first, last, server, resource, says)
        order = sorted(range(len(self.violations)), key=lambda i: (self.violations[i].first, i))
        return Verdict(tuple(self.violations[i] for i in order), value, notes)


def levels(spans: Iterable[Stretch]) -> list[Stretch]:
    """Sum of the heights of spans, as stretches in order."""
    steps: dict[int, Any] = defaultdict(int)
    for first, last, height in spans:
        steps[first] += height
        steps[last + 1] -= height
    cuts = sorted(steps)
    heights = accumulate(steps[cut] for cut in cuts[:-1])
    return [(a, b - 1, height) for (a, b), height in zip(pairwise(cuts), heights, strict=True)]


def jobs_of(solution: Data, known: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Jobs of a solution by name, in the instance's order; one without rows is idle."""
    jobs = {name: {"name": name, "assignments": []} for name in known}
    listed = solution["jobs"]
    for name, job in zip(names(listed, "jobs"), listed, strict=True):
        require(name in jobs, f"jobs: {name} is no job of the instance")
        require(set(job) <= JOB_KEYS, f"job {name}: keys must be {sorted(JOB_KEYS)}")
        end = job.get("completion")
        require(end is None or type(end) is int, f"job {name}: completion must be a slot or null")
        jobs[name].update(job)
    return jobs


def given_up(solution: Data, known: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Jobs that were begun and dropped, by name: what they used counts, and nothing else."""
    jobs = jobs_of({"jobs": solution.get("given_up", [])}, known)
    return {name: job for name, job in jobs.items() if job["assignments"]}


def rows_of(job: Data, needed: set[str], allowed: set[str]) -> list[Row]:
    """Rows of a job in order of time, each with the keys that it must and may have."""
    rows = list[Row]()
    here = f"job {job['name']}"
    for row in job["assignments"]:
        if not needed <= set(row) <= allowed:
            optional = f" and may be {sorted(allowed - needed)}" if allowed > needed else ""
            raise RefusedFile(f"{here}: keys of a row must be {sorted(needed)}{optional}")
        rows.append((*span(row, here), row))
    return sorted(rows, key=lambda row: row[:2])


def check_apart(rows: Iterable[Row], here: str) -> None:
    """Refuse rows of one slot where each is all that its job has then."""
    for (_, last, _), (first, _, _) in pairwise(rows):
        require(first > last, f"{here}: two rows of slot {first}")
