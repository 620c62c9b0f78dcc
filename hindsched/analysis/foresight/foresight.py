"""``hindsched.foresight``: how much of a loss is the price of not knowing, how much one's own.

    hindsight / algorithm = (hindsight / best online) x (best online / algorithm)   (maximising)

The best online policy is that of the extensive form over given futures (`models.futures`); every
number is an interval, whose ends a solver proved and the exact kernel evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import fsum, inf
from operator import mul
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from hindsched import limits
from hindsched.analysis.bounds import Bounds, written_down, written_up
from hindsched.analysis.foresight.certificates import (
    EXPECTED,
    GUARANTEE,
    can_certify_futures,
    certify_futures,
)
from hindsched.analysis.foresight.game import DETERMINISTIC, PolicyAnswers, solve_game
from hindsched.analysis.foresight.search import (
    LEAST_SHARE,
    FamilySearch,
    Guarantee,
    Strategy,
    commit_greedily,
    guarantee,
    no_better_than,
    peeking,
    run_on,
    share_of,
    tree_estimates,
)
from hindsched.errors import InputError, SolveFailed, check_type
from hindsched.instances.base import Instance
from hindsched.instances.io import write, write_json
from hindsched.json_types import JsonObject
from hindsched.limits import OutOfTime
from hindsched.models.base import COMMIT, POLICIES, RUN
from hindsched.models.futures import Futures
from hindsched.online.registry import algorithms as registered
from hindsched.online.registry import build_algorithm
from hindsched.solutions.base import Solution, write_solution
from hindsched.solvers.door.api import solve
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.work import is_counted, now

if TYPE_CHECKING:
    import pandas as pd

FORMAT, RESULT = "hindsched-foresight/1", "foresight.json"
DIGITS = 1e-12  # relative, of sums in floating point
SHARES = {"hindsight": 0.25, "greedy": 0.2, "online": 0.5, "deterministic": 0.4}
"""Of the time that is left; the rest is for randomised policies."""
CERTIFYING = 0.25  # of the time limit, for the two certificates
FEW_JOBS = 100  # of all scenarios, up to which policies that solve at every arrival are tried too
SEEDS = range(5)
DECIDES = {RUN: "decides slot by slot", COMMIT: "decides all of a job at its arrival"}
INTERVALS = (
    "hindsight", "best_online", "price", "value_of_information", "guarantee",
    "guarantee_deterministic",
)  # fmt: skip


@dataclass(frozen=True)
class Loss:
    """What one algorithm loses, and to what."""

    algorithm: str
    commitment: str  # when it is bound by what it decides
    expected: float  # value over the scenarios, and over the seeds of a randomised one
    ratio: Bounds  # hindsight over it (it over hindsight, minimising)
    own: Bounds | None  # against the best online policy; None where it may do more
    promised: float | None  # the share of hindsight that it reaches in its worst scenario

    def to_dict(self) -> JsonObject:
        """JSON data."""
        own_loss = None if self.own is None else self.own.to_dict()
        return {**vars(self), "ratio": self.ratio.to_dict(), "own": own_loss}


@dataclass(frozen=True)
class Foresight:
    """The price of not knowing on given futures."""

    futures: Futures
    policies: str  # the class of online policies
    formulation: str
    hindsight: Bounds  # expected value of who sees the future
    best_online: Bounds  # of the best policy that does not
    price: Bounds  # hindsight over the best online policy (its inverse, minimising)
    # The share of hindsight (the factor of it, minimising) that a policy can promise in every
    # scenario, randomised and deterministic.
    guarantee: Bounds
    guarantee_deterministic: Bounds
    optima: tuple[Bounds, ...]  # of the scenarios
    losses_by_algorithm: tuple[Loss, ...] = ()
    policy: Strategy | None = None  # the best one found, a schedule a scenario
    pure: Strategy | None = None  # the deterministic one with the best guarantee
    mixture: tuple[tuple[float, Strategy], ...] = ()  # the randomised one with the best guarantee
    weights: tuple[float, ...] = ()  # of the scenarios, where the guarantee's bound was found
    clairvoyant: tuple[Solution | None, ...] = ()  # schedules of who sees the future
    certificates: Mapping[str, Any] = field(default_factory=dict)  # files, by what they bound
    seconds: float = 0.0
    runs: Mapping[str, Sequence[Strategy]] = field(default_factory=dict)  # of the algorithms
    notes: tuple[str, ...] = field(default=())  # what is to be said of the futures

    @property
    def is_maximised(self) -> bool:
        """Whether values are to be large."""
        return self.futures.sense == "max"

    @property
    def value_of_information(self) -> Bounds:
        """EVPI: what knowing the future would be worth, in the objective's unit."""
        first, second = self.hindsight, self.best_online
        first, second = (first, second) if self.is_maximised else (second, first)
        least = _minus(first.lower, second.upper)
        return Bounds(least and max(0.0, least), _minus(first.upper, second.lower))

    @property
    def intervals(self) -> dict[str, Bounds]:
        """What was found."""
        return {name: getattr(self, name) for name in INTERVALS}

    @property
    def certified(self) -> dict[str, float]:
        """Bounds on the best online value and the guarantee that the kernel has checked."""
        return {name: float(file["bound"]) for name, file in self.certificates.items()}

    @property
    def unproven(self) -> list[str]:
        """Ends of intervals that no file of the folder proves: they rest on the solver's word."""
        far = "upper" if self.is_maximised else "lower"
        exact = DETERMINISTIC in self.certificates  # then the kernel plays all policies
        mixed = self.certified.get(GUARANTEE)
        stated = {
            "best_online": self.certified.get(EXPECTED), "guarantee": mixed,
            "guarantee_deterministic": self.certified.get(DETERMINISTIC, mixed),
        }  # fmt: skip
        lines = [] if exact else [f"hindsight: {far}"]
        for name, bound in stated.items():
            value = getattr(self.intervals[name], far)
            least = getattr(self.hindsight, far) if name == "best_online" else 1
            if value is None or value == least:  # nobody is better than hindsight
                continue
            more = 0.0 if bound is None else (value - bound) * (1 if self.is_maximised else -1)
            if bound is None or not 0 <= more <= DIGITS * abs(bound):
                lines.append(f"{name}: {far}")
        return sorted([*lines, *([] if GUARANTEE in self.certificates else ["distribution"])])

    @property
    def _certified_price(self) -> float | None:
        """Least price of not knowing that files show; None if that is nothing."""
        bound = self.certified.get(EXPECTED)
        known = self.hindsight.lower if self.is_maximised else self.hindsight.upper
        if not bound or not known:
            return None
        least = known / bound if self.is_maximised else bound / known
        return least if least > 1 else None

    @property
    def distribution(self) -> dict[str, float]:
        """Yao's: how likely each scenario is in the mixture that is hardest for any algorithm."""
        worth = [w * float(o.upper or 0) for w, o in zip(self.weights, self.optima, strict=False)]
        total = fsum(worth)
        names = [instance.name for instance in self.futures.instances]
        return {name: w / total for name, w in zip(names, worth, strict=False)} if total else {}

    @property
    def classes(self) -> dict[int, list[list[str]]]:
        """Names of the scenarios that cannot be told apart, by the slots in which that changes."""
        names = [instance.name for instance in self.futures.instances]
        return {
            slot: [[names[s] for s in group] for group in groups]
            for slot, groups in self.futures.classes().items()
        }

    def to_frame(self) -> pd.DataFrame:
        """A row an algorithm: expected value, ratio, price of not knowing, own loss."""
        import pandas as pd

        rows = [
            {
                "algorithm": loss.algorithm, "commitment": loss.commitment,
                "expected": loss.expected,
                **_ends("ratio", loss.ratio), **_ends("price", self.price),
                **_ends("own", loss.own or Bounds()), "promised": loss.promised,
            }
            for loss in self.losses_by_algorithm
        ]  # fmt: skip
        return pd.DataFrame(rows)

    def sentences(self) -> list[str]:
        """What was found, in words that stay true of the intervals."""
        up, price, lines = self.is_maximised, self.price, list[str]()
        who = f" that {DECIDES[COMMIT]}" * (self.policies == COMMIT)  # else it is the widest class
        checked = self._certified_price
        for loss in self.losses_by_algorithm:
            lines.append(_of_algorithm(loss, price, checked, self.policies, up))
        if price.upper is not None and price.upper <= 1 + 1e-9:
            lines.append("Not knowing the future costs nothing on these futures.")
        elif not self.losses_by_algorithm:
            by = "proven by solver" if self.unproven else "proven"
            lines.append(f"The price of not knowing is {price} ({by}).")
        end = self.guarantee.upper if up else self.guarantee.lower
        likely = {n: p for n, p in self.distribution.items() if p >= 0.005}
        mixture = ", ".join(f"{name} {share:.0%}" for name, share in likely.items())
        hardest = f"; the hardest mixture: {mixture}" if mixture else ""
        rounded, sign = (written_up, -1) if up else (written_down, 1)
        if end is not None and sign * (float(rounded(end)) - 1) > 0:
            known = self.certified.get(GUARANTEE)
            known = known if known is not None and sign * (known - 1) > 0 else None
            proof = _proof(rounded(end), None if known is None else rounded(known))
            most = f"more than {rounded(end)} of" if up else f"less than {rounded(end)} times"
            lines.append(
                f"No online algorithm{who}, randomised or not, can promise {most} hindsight on "
                f"these futures ({proof}{hardest})."
            )
        return [*lines, *self.notes]

    def to_dict(self) -> JsonObject:
        """What ``foresight --json`` prints."""
        scenarios = self.futures.instances, self.futures.probabilities, self.optima
        return {
            "family": self.futures.instances[0].family,
            "formulation": self.formulation,
            "policies": self.policies,
            "scenarios": [
                {"instance": instance.name, "probability": share, "optimum": optimum.to_dict()}
                for instance, share, optimum in zip(*scenarios, strict=True)
            ],
            **{name: interval.to_dict() for name, interval in self.intervals.items()},
            "certified": self.certified,
            "unproven": self.unproven,
            "mixture": [share for share, _ in self.mixture],
            "distribution": self.distribution,
            "classes": {str(slot): groups for slot, groups in self.classes.items()},
            "algorithms": [
                {**loss.to_dict(), "runs": len(self.runs[loss.algorithm])}
                for loss in self.losses_by_algorithm
            ],
            "sentences": self.sentences(),
            "seconds": self.seconds,
        }  # fmt: skip

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    __repr__ = __str__

    def write(self, folder: str | Path) -> None:
        """Write a folder that ``hindsched verify`` checks without a solver."""
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        for n, instance in enumerate(self.futures.instances):
            write(instance, place / f"future-{n}.json")
            for name, own in (("policy", self.policy), ("pure", self.pure)):
                if own is not None:
                    write_solution(own.schedules[n], place / f"{name}-{n}.json")
            if (best := self.clairvoyant[n]) is not None:
                write_solution(best, place / f"hindsight-{n}.json")
        strategies = [("mixture", strategy) for _, strategy in self.mixture]
        strategies += [("run", strategy) for runs in self.runs.values() for strategy in runs]
        for number, (kind, strategy) in enumerate(strategies):
            for n, solution in enumerate(strategy.schedules):
                write_solution(solution, place / f"{kind}-{number}-{n}.json")
        for name, certificate in self.certificates.items():
            write_json(certificate, place / f"certificate-{name}.json")
        write_json(self.result(), place / RESULT)

    def result(self) -> JsonObject:
        """What the folder's file says: what the other files show, and what they do not."""
        stated = self.to_dict()
        sentences = [line for line in self.sentences() if line not in self.futures.notes]
        return {
            "format": FORMAT, **{key: stated[key] for key in stated if key != "seconds"},
            "sentences": sentences,
        }  # fmt: skip


def foresight(
    instances: Sequence[Instance],
    probabilities: Sequence[float] | None = None,
    algorithms: Sequence[str] | None = None,
    policies: str = RUN,
    *,
    formulation: str | None = None,
    time_limit: float = 60.0,
) -> Foresight:
    """Measure the price of not knowing on given futures, and each algorithm's own loss.

    Parameters
    ----------
    instances : sequence of Instance
        Scenarios of one family, cluster and horizon that differ in their jobs.
    probabilities : sequence of float, optional
        Equal if not given.
    algorithms : sequence of str, optional
        By default the family's own first one.
    policies : {"run", "commit"}
        The online policies that are compared with: slot by slot, or all of a job at its arrival.
    formulation : str, optional
        Which of the family's problems.
    time_limit : float
        Seconds for all solves.

    Raises
    ------
    InputError
        For scenarios that do not belong together, and for probabilities that are none.

    Examples
    --------
    >>> import hindsched as hs
    >>> found = hs.foresight(hs.tree("gang", at=[2], branches=2), algorithms=["fifo"])
    >>> found.price.lower >= 1
    True
    """
    begun = now()
    if policies not in POLICIES:
        raise InputError("policies", policies, f"must be {' or '.join(POLICIES)}")
    check_type("time_limit", time_limit, int | float, "a number of seconds above 0")
    if not 0 < time_limit < inf:
        raise InputError("time_limit", time_limit, "must be above 0")
    futures = Futures.of(instances, probabilities)
    first, up = futures.instances[0], futures.sense == "max"
    formulation = first.check_formulation(formulation)
    names = [next(iter(registered(first.family)))] if algorithms is None else list(algorithms)
    for name in names:
        build_algorithm(first.family, name, {})
    ends = begun + time_limit
    programs = ends - CERTIFYING * time_limit  # when the last of them ends

    def left(part: str) -> float:
        return max(0.1, SHARES.get(part, 1.0) * (programs - now()))

    optima, known = list[Bounds](), list[Strategy]()
    clairvoyant = list[Solution | None]()
    game = solve_game(futures, policies, formulation, time_limit)
    if game is not None:
        optima, clairvoyant = game[0], list(game[1])
    until = begun + SHARES["hindsight"] * time_limit
    for after, instance in zip(range(len(futures), 0, -1), futures.instances, strict=True):
        if game is not None:
            break
        seconds = max(0.1, (until - now()) / max(1.0, 0.5 * after))
        solved = solve(instance, formulation=formulation, threads=1, time_limit=seconds)
        pair = (solved.objective, solved.bound)
        clairvoyant.append(solved.solution)
        optima.append(Bounds(*(pair if up else pair[::-1])))
    runs = {name: run_on(futures, name, formulation, SEEDS) for name in names}
    for name, strategies in runs.items():
        built = build_algorithm(first.family, name, {})
        if _is_of(built, policies, formulation) and _keeps_to(policies, futures, strategies):
            known += strategies
    if game is not None:
        answers = game[2]
    else:
        answers = _search_policies(
            futures, policies, formulation, optima, clairvoyant, known, left, ends
        )
    return assemble_result(
        futures, policies, formulation, optima, answers, runs, clairvoyant,
        now() - begun,
    )  # fmt: skip


def assemble_result(
    futures: Futures, policies: str, formulation: str, optima: Sequence[Bounds],
    answers: PolicyAnswers, runs: Mapping[str, Sequence[Strategy]],
    clairvoyant: Sequence[Solution | None], seconds: float,
) -> Foresight:  # fmt: skip
    """All that follows from what was solved and run."""
    best, mixed = answers.best_online, answers.guarantee
    up, hindsight = futures.sense == "max", expected_bounds(optima, futures.probabilities)
    proof, weights = answers.certificates.get(GUARANTEE), mixed.weights
    if proof is not None:
        rows: Any = proof["scenarios"]
        known = {row["instance_sha256"]: float(row["weight"]) for row in rows}
        weights = tuple(known[instance.sha256()] for instance in futures.instances)
    losses = list[Loss]()
    for name, strategies in runs.items():
        built = build_algorithm(futures.instances[0].family, name, {})
        mean = Strategy(tuple(map(fmean, zip(*(s.values for s in strategies), strict=True))))
        expected = mean.expected(futures.probabilities)
        alone, own_loss = Bounds(expected, expected), None
        if _is_of(built, policies, formulation) and _keeps_to(policies, futures, strategies):
            own_loss = at_least_1(_bounds_quotient(best, alone, up))
        ratio, promised = _bounds_quotient(hindsight, alone, up), share_of(mean, optima, up)
        losses.append(Loss(name, built.card.commitment, expected, ratio, own_loss, promised))
    return Foresight(
        futures=futures, policies=policies, formulation=formulation, hindsight=hindsight,
        best_online=best, price=at_least_1(_bounds_quotient(hindsight, best, up)),
        guarantee=mixed.interval, guarantee_deterministic=answers.deterministic.interval,
        optima=tuple(optima), losses_by_algorithm=tuple(losses), policy=answers.policy,
        pure=next((own for _, own in answers.deterministic.mixture), None),
        mixture=mixed.mixture, weights=weights, clairvoyant=tuple(clairvoyant),
        certificates=answers.certificates, seconds=seconds, runs=runs, notes=_notes(futures, runs),
    )  # fmt: skip


def _search_policies(
    futures: Futures, policies: str, formulation: str, optima: list[Bounds],
    clairvoyant: Sequence[Solution | None], known: list[Strategy], left: Callable[[str], float],
    ends: float,
) -> PolicyAnswers:  # fmt: skip
    """Best online value, its policy, both guarantees and certificates, by programs."""
    up, hindsight = futures.sense == "max", expected_bounds(optima, futures.probabilities)
    few = sum(len(instance.jobs) for instance in futures.instances) <= FEW_JOBS
    with suppress(OutOfTime), limits.time_limit(None if is_counted() else left("greedy")):
        options = SolveOptions(time_limit=min(10.0, left("greedy")), threads=1)
        greedy = commit_greedily(futures, formulation, options)
        if greedy is not None:
            values = tuple(solution.objective() for solution in greedy)
            known.append(Strategy(values, greedy))
        if not known or few:
            known += _any_policy(futures, policies, formulation)
    search = FamilySearch(futures, policies, formulation, optima, SolveOptions(threads=1))
    best, policy = _best_online(search, known, left("online"), up)
    best = no_better_than_hindsight(best, hindsight, up)
    found_policies = [*known, *([policy] if policy is not None and policy not in known else [])]
    fixed = search.least(left("deterministic"), found_policies)
    found_policies += [strategy for _, strategy in fixed.mixture]
    mixed = Guarantee(Bounds(0.0, 1.0) if up else Bounds(1.0, None))
    if found_policies:
        least_share = LEAST_SHARE if search.is_cut else 0.0
        end = best.upper if up else best.lower
        known_bound = None if end is None else (futures.probabilities, end)
        mixed = guarantee(
            search.best, optima, found_policies, up, left("mixed"), least_share, known_bound
        )
    certificates = _certificates(
        futures, policies, formulation, clairvoyant, [p for p in (policy, *known) if p], mixed,
        ends,
    )  # fmt: skip
    best = _as_certified(best, certificates.get(EXPECTED), up)
    mixed = replace(mixed, interval=_as_certified(mixed.interval, certificates.get(GUARANTEE), up))
    deterministic = no_better_than(fixed.interval, mixed.interval, found_policies, optima, up)
    return PolicyAnswers(best, policy, mixed, deterministic, certificates)


def _as_certified(interval: Bounds, certificate: Any, up: bool) -> Bounds:
    """The end that the solver proves as a certificate has it, where both are the same number."""
    far, attained = (interval.upper, interval.lower) if up else (interval.lower, interval.upper)
    if certificate is None or far is None or abs(certificate["bound"] - far) > 1e-9 * abs(far):
        return interval
    end = (max if up else min)(float(certificate["bound"]), far)
    return Bounds(attained, end) if up else Bounds(end, attained)


def _any_policy(futures: Futures, policies: str, formulation: str) -> list[Strategy]:
    """What `reoptimise` does, or else the family's first algorithm of the class."""
    family = futures.instances[0].family
    for name in sorted(registered(family), key=lambda name: name != "reoptimise"):
        if _is_of(build_algorithm(family, name, {}), policies, formulation):
            strategies = run_on(futures, name, formulation)
            if _keeps_to(policies, futures, strategies):
                return strategies
    return []


def _best_online(
    search: FamilySearch, known: Sequence[Strategy], seconds: float, up: bool
) -> tuple[Bounds, Strategy | None]:
    """ON: the bound of the extensive form, and the best policy known or found."""
    weights = search.futures.probabilities
    bound, policy = search.best(weights, seconds, known)
    every = [*known, *([] if policy is None else [policy])]
    if not every:
        return Bounds(None, bound) if up else Bounds(bound, None), None
    best = (max if up else min)(every, key=lambda strategy: strategy.expected(weights))
    reached = best.expected(weights)
    if bound is not None:  # the solver's tolerance
        off = reached - bound if up else bound - reached
        if off > 1e-5 * max(1.0, abs(bound)):
            raise SolveFailed(f"a policy of {reached!r} is better than the bound {bound!r}")
        bound = max(bound, reached) if up else min(bound, reached)
    return Bounds(reached, bound) if up else Bounds(bound, reached), best


def _certificates(
    futures: Futures, policies: str, formulation: str, clairvoyant: Sequence[Solution | None],
    known: Sequence[Strategy], mixed: Guarantee, ends: float,
) -> dict[str, JsonObject]:  # fmt: skip
    """What the kernel can check of the two bounds, in families that it has such proofs of."""
    certificates = dict[str, JsonObject]()
    if not can_certify_futures(futures.instances[0], formulation) or not known:
        return certificates
    slots = [s.completion(job.name) or 0 for policy in known[:2] for s in policy.schedules
            for job in s.instance.jobs]  # fmt: skip
    last = 2 * max(slots) - futures.last_arrival // 2
    if futures.sense == "max":  # there the horizon is hard
        last = futures.instances[0].horizon
    seconds = max(0.1, (ends - now()) / 2)
    certificate = certify_futures(
        futures, policies, formulation, futures.probabilities, last, seconds
    )
    if certificate is not None:
        certificates[EXPECTED] = certificate
    if mixed.weights and all(clairvoyant):
        best = [solution for solution in clairvoyant if solution]
        seconds = max(0.1, ends - now())
        certificate = certify_futures(
            futures, policies, formulation, mixed.weights, last, seconds, best
        )
        if certificate is not None:
            certificates[GUARANTEE] = certificate
    return certificates


def no_better_than_hindsight(best: Bounds, hindsight: Bounds, up: bool) -> Bounds:
    """The best online value, which is never beyond that of who sees the future."""
    if not up:
        return Bounds(max(hindsight.lower or 0.0, best.lower or 0.0), best.upper)
    bounds = [end for end in (hindsight.upper, best.upper) if end is not None]
    return Bounds(best.lower, min(bounds, default=None))


def _is_of(algorithm: Any, policies: str, formulation: str) -> bool:
    """Whether all that an algorithm may do is allowed to the class."""
    knows = algorithm.card
    if knows.clairvoyant or algorithm.relaxes(formulation):
        return False
    return policies == RUN or (knows.commits_at_arrival and policies == COMMIT)


def _keeps_to(policies: str, futures: Futures, strategies: Sequence[Strategy]) -> bool:
    """Whether runs are of the class: A_online of edgecloud moves chunks when others arrive."""
    if policies == RUN:  # the simulator sees to it
        return True
    return not any(peeking(futures, strategy.schedules, policies) for strategy in strategies)


def _proof(stated: object, certified: object) -> str:
    """By whom a bound that is told is proven, and what a certificate proves if that is less."""
    if certified == stated:
        return "proven"
    return "proven by solver" + (f"; {certified} by a certificate" if certified else "")


def _of_algorithm(loss: Loss, price: Bounds, checked: float | None, policies: str, up: bool) -> str:
    """The sentence about one algorithm."""
    ratio, own_loss = loss.ratio, loss.own
    nobody = "Nobody who cannot see the future"
    nobody += f" and {DECIDES[COMMIT]}" * (policies == COMMIT)
    if ratio.lower is None or ratio.upper is None or price.lower is None:
        return f"{loss.algorithm}: {loss.expected:.6g} in expectation; hindsight is not known."
    if up:
        reached = written_down(100 / ratio.upper if ratio.upper else 100.0)
        limit, known = (least and f"{written_up(100 / least)}%" for least in (price.lower, checked))
        text = (
            f"{loss.algorithm} reaches {reached}% of hindsight in expectation. "
            f"{nobody} reaches more than {limit} ({_proof(limit, known)})"
        )
    else:
        limit, known = (least and written_down(least) for least in (price.lower, checked))
        text = (
            f"{loss.algorithm} costs at most {written_up(ratio.upper)} times hindsight in "
            f"expectation. {nobody} costs less than {limit} times ({_proof(limit, known)})"
        )
    if own_loss is None:
        return f"{text}; {loss.algorithm} may do what this class of policies may not."
    return (f"{text}; so of the factor {ratio}, {price} is the price of not knowing and at least "
            f"{written_down(own_loss.lower or 1.0)} is {loss.algorithm}'s own.")  # fmt: skip


def _notes(futures: Futures, runs: Iterable[str]) -> tuple[str, ...]:
    """What is to be said of the scenarios themselves, and of what algorithms are told of them."""
    family, remarks = futures.instances[0].family, list[str]()
    names = [n for n in runs if tree_estimates(futures, build_algorithm(family, n, {}))]
    if names:
        remarks = [f"Estimates that {', '.join(names)} is told in advance are those of all futures "
                "together, the same in each: with those of the one future that comes, as `simulate`"
                " tells them, it would know which that is."]  # fmt: skip
    first = min(futures.classes())
    known = len(futures) > 1 and all(len(group) == 1 for group in futures.classes()[first])
    note = "The futures can be told apart from the first slot on: there is nothing not to know."
    return (*futures.notes, *([note] if known else []), *remarks)


def _ends(name: str, interval: Bounds) -> dict[str, float | None]:
    return {f"{name}_lower": interval.lower, f"{name}_upper": interval.upper}


def expected_bounds(parts: Sequence[Bounds], weights: Sequence[float]) -> Bounds:
    """Both ends of a weighted sum."""

    def end(name: str) -> float | None:
        ends = [getattr(part, name) for part in parts]
        return None if None in ends else fsum(map(mul, weights, ends))

    return Bounds(end("lower"), end("upper"))


def _minus(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first - second


def _bounds_quotient(better: Bounds, worse: Bounds, up: bool) -> Bounds:
    """How many times better one is, of numbers that are not negative; 0 by 0 is 1."""
    first, second = (better, worse) if up else (worse, better)

    def divided(a: float | None, b: float | None) -> float | None:
        if a is None or b is None:
            return None
        return a / b if b > 0 else 1.0 if a <= 0 else inf

    return Bounds(divided(first.lower, second.upper), divided(first.upper, second.lower))


def at_least_1(interval: Bounds) -> Bounds:
    """A quotient that is 1 at least by what it means."""
    lower = max(1.0, interval.lower or 1.0)
    return Bounds(lower, None if interval.upper is None else max(lower, interval.upper))
