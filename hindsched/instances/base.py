"""What every family's instance shares: the envelope, strict records and one-line errors.

Numbers keep the JSON type they were written with (an integer stays an integer), so that reading and
writing a file round-trips exactly and its hash is the hash of the file.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import islice
from numbers import Integral
from operator import attrgetter
from types import ModuleType
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    StrictFloat,
    StrictInt,
    ValidationError,
    model_validator,
)

from hindsched import kernel
from hindsched.arrays import Floats
from hindsched.errors import MOST_NAMED, InputError, check_type
from hindsched.instances.decimals import exactly

Derived = TypeVar("Derived")
JobRecord: TypeAlias = Any
"""A job's record. What is in it beside ``name``, only its family's modules know; what all families
share hands it on to them."""

FORMAT: Literal["hindsched/1"] = "hindsched/1"
FAMILIES = kernel.FAMILIES
"""The families' names, in the order of the papers, then those that installed packages bring.

A package brings one by an entry point of the group ``hindsched.families``; see CONTRIBUTING.md.
"""
OFFERS = {
    "instance": ("INSTANCE",),
    "generator": ("GENERATOR",),
    "solution": ("SOLUTION",),
    "offline": ("MODELS",),
    "solvers": ("SOLVERS",),
    "algorithms": ("ONLINE",),
    "kernel": ("Problem",),
    "scenarios": ("scenario_lp",),
}
"""Names that a family's modules must offer, by aspect; other aspects are a family's choice."""

MOST_COUNT = 10_000_000  # counts beyond this are mistakes: they would only exhaust the memory
LARGEST_NUMBER = 1e15
"""Amounts beyond this are mistakes: what follows from them could not be counted exactly."""
CANCELLING = 1000
"""How far a utility may lose digits in floating point before it is evaluated with more."""
SMALLEST_POSITIVE = 1e-15
"""Positive amounts below this are mistakes: quotients by them could not be counted either."""


def family_module(folder: str, family: str, aspect: str) -> ModuleType:
    """Find a family's module by the folder's dotted path, the family's name and the file's.

    `InputError` if the family is unknown, or its module is missing or lacks a name of `OFFERS`.
    """
    check_family(family)
    name = family_module_name(folder, family, aspect)
    offers = OFFERS.get(aspect, ())
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):  # it is there, and imports what is not
            raise
        rule = f"module {name} is missing; it must offer {', '.join(offers)}"
        raise InputError("family", family, rule if offers else rule.split(";")[0]) from None
    if absent := [each for each in offers if not hasattr(module, each)]:
        raise InputError("family", family, f"module {name} must offer {', '.join(absent)}")
    return module


def family_module_name(folder: str, family: str, aspect: str) -> str:
    """Where a family's module is: in the folder, or in the package that brings the family."""
    package = kernel.PACKAGES.get(family)
    return f"{package}.{aspect}" if package else f"hindsched.{folder}.{family}.{aspect}"


def families_on(folder: str, aspect: str) -> tuple[str, ...]:
    """Families that have a module in a folder, in the order of `FAMILIES`."""
    return tuple(family for family in FAMILIES if has_module(folder, family, aspect))


@cache
def has_module(folder: str, family: str, aspect: str) -> bool:
    """Whether a family has a module in a folder."""
    try:
        return importlib.util.find_spec(family_module_name(folder, family, aspect)) is not None
    except ModuleNotFoundError:  # no package of that family in that folder
        return False


def check_family(family: object) -> None:
    """Raise `InputError` unless `family` is one of `FAMILIES`."""
    if family not in FAMILIES:
        raise InputError("family", family, f"must be one of {', '.join(FAMILIES)}")


def check_instance(value: object, where: str = "instance") -> None:
    """Raise `InputError` unless the value is an instance."""
    check_type(where, value, Instance, "an Instance, as hs.read and hs.generate return it")


def whole_number(where: str, value: object, least: int) -> int:
    """A whole number of any make, numpy's too, of at least `least`; `InputError` for another."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(where, value, f"must be at least {least}, a whole number")
    return int(value)


def rounded_up(terms: Iterable[float]) -> float:
    """Sum of numbers, rounded up by more than their rounding."""
    total = math.fsum(terms)
    return total + 1e-12 * abs(total)


Number = Annotated[StrictInt | StrictFloat, Field(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER)]
NonNegative = Annotated[Number, Field(ge=0)]
Positive = Annotated[Number, Field(ge=SMALLEST_POSITIVE)]
Count = Annotated[StrictInt, Field(ge=0, le=MOST_COUNT)]
PositiveCount = Annotated[StrictInt, Field(ge=1, le=MOST_COUNT)]
Slot = Annotated[StrictInt, Field(ge=1, le=MOST_COUNT)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Demand = dict[str, NonNegative]  # amount by resource; a missing resource is 0
Rule = tuple[object, str, object, str]
"""Whether a rule holds, the path of its field, the value there, and what should hold."""


class cluster_property(cached_property[Derived]):  # noqa: N801
    """A cached property that depends on no job: instances of the same cluster share its value."""

    def __init__(self, derive: Callable[[Any], Derived]) -> None:
        super().__init__(derive)
        self.derive, self.func = derive, self._of_cluster

    def _of_cluster(self, instance: Instance) -> Derived:
        shared = instance._of_cluster
        if self.attrname not in shared:
            shared[self.attrname] = self.derive(instance)
        value: Derived = shared[self.attrname]
        return value


def per_job(
    read: str | Callable[[Any], Any], kind: type = np.int64
) -> cached_property[NDArray[Any]]:
    """A field of every job, or what is read of it, as a cached array of shape (jobs,)."""
    of_job = attrgetter(read) if isinstance(read, str) else read
    return cached_property(lambda self: np.array([of_job(job) for job in self.jobs], dtype=kind))


def amounts(records: str, field: str) -> Callable[[Any], Floats]:
    """Reads the amounts by resource of a field of records, shape (records, resources)."""

    def read(instance: Any) -> Floats:
        held = getattr(instance, records) or ()
        return amounts_of([getattr(record, field) for record in held], instance.resources)

    return read


class Record(BaseModel):
    """A frozen record that refuses unknown fields; `InputError` names all that is wrong."""

    model_config = ConfigDict(frozen=True, extra="forbid", ignored_types=(cluster_property,))

    @classmethod
    def __pydantic_init_subclass__(cls, **_: object) -> None:
        """Docstrings list the fields, each of which says itself what it is."""
        described = [
            f"{n}\n    {f.description}" for n, f in cls.model_fields.items() if f.description
        ]
        if described:
            head = (inspect.cleandoc(cls.__doc__ or ""), "", "Parameters", "----------")
            cls.__doc__ = "\n".join((*head, *described))

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise input_error(error) from None

    def __eq__(self, other: object) -> bool:
        """Equal fields; cached arrays do not count."""
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in type(self).model_fields)


class Server(Record):
    """A physical server."""

    name: Name = Field(description="name, unique in the instance")
    capacity: Demand = Field(description="capacity by resource; a missing resource is 0")


Servers = Annotated[tuple[Server, ...], Field(min_length=1)]


class Utility(Record):
    """Base of the utilities, which fall with the completion ``x`` (slots)."""

    kind: str

    def model_post_init(self, context: object) -> None:
        """Files tell the kind, also where nobody gave it."""
        self.model_fields_set.add("kind")

    def value(self, completion: float) -> float:
        """Evaluate the utility at a completion of `completion` slots."""
        raise TypeError(f"{type(self).__name__} defines no value")

    def values(self, completions: Floats) -> Floats:
        """`value` at each of many completions."""
        return np.array([self.value(completion) for completion in completions.tolist()], float)


class SigmoidUtility(Utility):
    """``priority / (1 + exp(decay (x - target)))``: time-critical when `decay` is large."""

    kind: Literal["sigmoid"] = "sigmoid"
    priority: NonNegative
    decay: NonNegative
    target: Number

    def value(self, completion: float) -> float:
        """Evaluate at `completion`; underflows to 0, never overflows."""
        return float(self.priority * math.exp(self.log_value_per_priority(completion)))

    def log_value_per_priority(self, completion: float) -> float:
        """Logarithm of ``value / priority``, right where the value itself underflows."""
        exponent = self.decay * (completion - self.target)
        if self.decay * (abs(completion) + abs(self.target)) > CANCELLING:
            exponent = float(exactly(self.decay) * (exactly(completion) - exactly(self.target)))
        if exponent > 0:
            return -exponent - math.log1p(math.exp(-exponent))
        return -math.log1p(math.exp(exponent))


class LinearUtility(Utility):
    """``slope x + intercept``."""

    kind: Literal["linear"] = "linear"
    slope: Number
    intercept: Number

    def value(self, completion: float) -> float:
        """Evaluate at `completion`; exactly where the two terms nearly cancel."""
        value = self.slope * completion + self.intercept
        if abs(value) * CANCELLING < abs(self.intercept):
            return float(exactly(self.slope) * exactly(completion) + exactly(self.intercept))
        return float(value)


class PowerUtility(Utility):
    """``(scale / x) ** exponent`` for ``x > 0``."""

    kind: Literal["power"] = "power"
    scale: Positive
    exponent: NonNegative

    def value(self, completion: float) -> float:
        """Evaluate at `completion` > 0; a large exponent asks for all digits near 1."""
        if self.exponent > CANCELLING and self.scale < 2 * completion < 4 * self.scale:
            above = exactly(self.scale) / exactly(completion) - 1
            return math.exp(float(self.exponent) * math.log1p(float(above)))
        return float((self.scale / completion) ** self.exponent)


class Instance(Record):
    """The envelope that every family shares."""

    sense: ClassVar[Literal["max", "min"]]
    formulations: ClassVar[tuple[str, ...]]  # allowed ``--formulation`` strings, the default first

    format: Literal["hindsched/1"] = FORMAT
    family: str
    name: Name = Field(description="name of the instance")
    horizon: PositiveCount = Field(description="slots T, numbered 1..T; what it bounds differs")
    slot_seconds: Positive = Field(description="length of a slot in seconds")
    provenance: dict[str, Any] | None = Field(
        default=None, description="how it was made; free form"
    )
    jobs: tuple[JobRecord, ...] = ()
    _of_cluster: dict[str | None, Any] = PrivateAttr(default_factory=dict)
    """What has been derived of the cluster alone, by property; see `cluster_property`."""

    @model_validator(mode="after")
    def _obeys_its_rules(self) -> Self:
        if broken := list(islice(self._broken_rules(), MOST_NAMED + 1)):
            first, *others = broken
            raise InputError(first.where, first.value, first.rule, others)
        return self

    def _broken_rules(self) -> Iterator[InputError]:
        """Every broken rule; those of the jobs where the cluster breaks none."""
        cluster = list(broken(self.cluster_rules()))
        yield from cluster
        yield from broken(unique_names("jobs", self.jobs))
        if not cluster:
            for index, job in enumerate(self.jobs):
                yield from broken(self.job_rules(job), f"jobs[{index}]")
            yield from broken(self.rules_of_all())

    def cluster_rules(self) -> Iterable[Rule]:
        """Rules of what is no job; a family's own."""
        return ()

    def job_rules(self, job: JobRecord) -> Iterable[Rule]:
        """Rules of a job, at paths within it; a family's own."""
        return ()

    def rules_of_all(self) -> Iterable[Rule]:
        """Rules of the jobs together; a family's own."""
        return ()

    def __repr__(self) -> str:
        size = f"{len(self.jobs)} jobs, horizon {self.horizon}"
        return f"<{self.family} instance {self.name!r}: {size}>"

    __str__ = __repr__

    @classmethod
    def parse(cls, data: Mapping[str, object]) -> Self:
        """Build from JSON data; every broken rule becomes an `InputError`.

        Raises
        ------
        InputError
            Naming the field's path, the value and the rule of the first rule broken.
        """
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise input_error(error) from None

    def to_dict(self) -> dict[str, Any]:
        """JSON data of exactly the fields that were given, numbers as they were given."""
        data = self.model_dump(mode="json", exclude_unset=True)
        return {"format": self.format, "family": self.family, **data}

    @cached_property
    def exact(self) -> kernel.ExactInstance:
        """What the kernel reads, kept: many schedules of an instance are judged at one reading."""
        if self.family in kernel.PACKAGES:
            family_module("kernel", self.family, "kernel")  # says in one line if it is missing
        return kernel.ExactInstance(self.to_dict())

    def sha256(self) -> str:
        """Hash of the canonical JSON (sorted keys, no spaces)."""
        return self._sha256

    @cached_property
    def _sha256(self) -> str:
        return hashlib.sha256(canonical_json(self.to_dict()).encode()).hexdigest()

    def check_formulation(self, formulation: str | None) -> str:
        """The first of `formulations` with these words, in any order; `InputError` without one."""
        words = formulation.split(",") if formulation is not None else []
        for known in self.formulations:
            if {*words} <= {*known.split(",")} and len({*words}) == len(words):
                return known
        rule = f"must be one of {', '.join(self.formulations)}"
        raise InputError("formulation", formulation, rule)

    def certain_bound(self) -> float | None:
        """A bound on the optimum of every formulation that costs nothing; None if there is none."""
        return None

    def arrival_of(self, job: JobRecord) -> int:
        """When a job arrives, as slots are counted."""
        return int(job.arrival)

    def job_index(self, name: str) -> int:
        """Position of the job called `name`."""
        if name not in self._positions:
            raise InputError("jobs", name, "must name a job of the instance")
        return self._positions[name]

    @cached_property
    def _positions(self) -> dict[str, int]:
        """Positions of jobs by name, of two with the same the first."""
        count = len(self.jobs)
        return {job.name: count - 1 - at for at, job in enumerate(reversed(self.jobs))}

    def position_of(self, job: JobRecord) -> int:
        """Position of a job given by its name, its position or its record, or `InputError`."""
        if isinstance(job, str):
            return self.job_index(job)
        if isinstance(job, Record):
            position = self.job_index(getattr(job, "name", ""))
            if self.jobs[position] == job:
                return position
        elif isinstance(job, int) and not isinstance(job, bool) and 0 <= job < len(self.jobs):
            return job
        rule = f"must be a job of the instance: its record, name or position below {len(self.jobs)}"
        raise InputError("job", getattr(job, "name", job), rule)

    def with_jobs(self, jobs: tuple[JobRecord, ...]) -> Self:
        """Return the same cluster and horizon with other jobs (not validated again).

        What has been derived of the cluster alone (`cluster_property`) goes with it.
        """
        made = self.with_fields(jobs=tuple(jobs))
        made._of_cluster = self._of_cluster
        return made

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy; one with changed fields without what was derived of the others."""
        return self.with_fields(**update) if update else super().model_copy(deep=deep)

    def with_fields(self, **changed: object) -> Self:
        """Return a copy with fields changed, without its cached arrays (not validated again)."""
        fields = {name: getattr(self, name) for name in self.model_fields_set}
        return type(self).model_construct(**{**fields, **changed})


def canonical_json(data: object) -> str:
    """Serialise with sorted keys and no spaces: the text that hashes are taken over."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def broken(rules: Iterable[Rule], where: str = "") -> Iterator[InputError]:
    """The rules that do not hold, their paths within `where`."""
    for holds, path, value, rule in rules:
        if not holds:
            yield InputError(".".join(filter(None, (where, path))), value, rule)


def unique_names(where: str, records: Iterable[Any]) -> Iterator[Rule]:
    """No name, or record's name, stands twice."""
    seen: set[str] = set()
    for index, record in enumerate(records):
        name, at = (record, "") if isinstance(record, str) else (record.name, ".name")
        yield name not in seen, f"{where}[{index}]{at}", name, "names must be unique"
        seen.add(name)


def known_keys(where: str, given: Mapping[str, object], known: Sequence[str]) -> Iterator[Rule]:
    """Keys are those that the instance names."""
    for key, value in given.items():
        yield key in known, f"{where}.{key}", value, f"must be one of {', '.join(known)}"


def known_servers(where: str, servers: Sequence[Server], known: Sequence[str]) -> Iterator[Rule]:
    """Servers have names of their own, and capacities of known resources."""
    yield from unique_names(where, servers)
    for index, server in enumerate(servers):
        yield from known_keys(f"{where}[{index}].capacity", server.capacity, known)


def known_resources(resources: Sequence[str], bandwidth: str) -> Iterator[Rule]:
    """Resources have names of their own, and bandwidth is one of them."""
    yield from unique_names("resources", resources)
    yield (
        bandwidth in resources, "bandwidth_resource", bandwidth, "must be one of the resources"
    )  # fmt: skip


def in_time(arrival: int, horizon: int) -> Rule:
    """A job arrives within the horizon."""
    return arrival <= horizon, "arrival", arrival, f"must be in 1..{horizon}"


def countable_work(path: str, amount: float) -> Rule:
    """A work can be counted in slots."""
    rule = f"work must be at most {LARGEST_NUMBER:.0e} slots"
    return amount <= LARGEST_NUMBER, path, amount, rule


def amounts_of(demands: Sequence[Mapping[str, float]], resources: Sequence[str]) -> Floats:
    """Amounts by resource as rows, shape (demands, resources); a missing resource is 0."""
    rows = [[float(demand.get(resource, 0)) for resource in resources] for demand in demands]
    return np.array(rows, dtype=float).reshape(len(demands), len(resources))


def input_error(error: ValidationError) -> InputError:
    """Turn all that pydantic complains of into one error: field path, value, rule of each."""
    complaints = error.errors(include_url=False)
    places = [_error_place(complaint["loc"]) for complaint in complaints]
    of_floats = {place for place, c in zip(places, complaints, strict=True) if "float" in c["type"]}
    errors_by_place: dict[tuple[Any, ...], list[InputError]] = {}
    for place, complaint in zip(places, complaints, strict=True):
        # Each kind that a union allows complains of the same place, or of one within it.
        if any(place[:length] in errors_by_place for length in range(len(place) + 1)):
            continue
        where, broken = field_path(place), complaint.get("ctx", {}).get("error")
        if isinstance(broken, InputError):  # of a record's own
            errors_by_place[place] = [
                InputError(f"{where}.{each.where}".strip("."), each.value, each.rule)
                for each in (broken, *broken.others)
            ]
            continue
        kind, message = complaint["type"], complaint["msg"].removeprefix("Value error, ")
        value, rule = complaint["input"], message[0].lower() + message[1:]
        if kind == "int_type" and place in of_floats:
            rule = "must be a number"  # of either kind: the union complains of both
        elif kind == "tuple_type":
            rule = "must be a list"
        elif kind == "missing":
            value, rule = "(absent)", "is required"
        elif kind == "extra_forbidden":
            rule = "unknown field"
        errors_by_place[place] = [InputError(where or "instance", value, rule)]
    first, *others = [wrong for errors in errors_by_place.values() for wrong in errors]
    return InputError(first.where, first.value, first.rule, others)


def _error_place(location: Iterable[Any]) -> tuple[Any, ...]:
    """Where pydantic complains, without the kinds that a union allows."""
    kinds = {"sigmoid", "linear", "power", "int", "float", "constrained-int", "constrained-float"}
    return tuple(part for part in location if part not in kinds and "[" not in str(part))


def field_path(location: Iterable[Any]) -> str:
    """Write a location as ``jobs[3].worker.gpu``."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return "".join(parts).removeprefix(".")
