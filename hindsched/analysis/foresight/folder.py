"""The check of a folder of what `foresight` found: futures, the best policy, certificates.

``foresight.json`` says what was found; ``future-N.json`` are the scenarios, ``policy-N.json`` what
the best policy found does in each of them, ``hindsight-N.json`` a schedule of who sees the future,
``certificate-*.json`` bounds. The check needs no solver: it judges every schedule, sees that the
policy decides alike where histories are equal, and makes every number and sentence again from the
files (``mixture-*``, ``run-*``: what the randomised policy and the algorithms do). What rests on
the solver's word alone is listed as ``unproven``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import fsum, isclose
from pathlib import Path
from typing import Any

from hindsched.analysis.bounds import Bounds
from hindsched.analysis.foresight.certificates import EXPECTED
from hindsched.analysis.foresight.foresight import (
    DIGITS,
    FORMAT,
    RESULT,
    Foresight,
    assemble_result,
    expected_bounds,
    no_better_than_hindsight,
)
from hindsched.analysis.foresight.game import DETERMINISTIC, PolicyAnswers, game_of
from hindsched.analysis.foresight.mixed import mean_values
from hindsched.analysis.foresight.search import (
    Guarantee,
    Strategy,
    clipped,
    no_better_than,
    peeking,
    share_of,
)
from hindsched.analysis.verify import document_of_instance, exact_check_of
from hindsched.errors import InputError
from hindsched.instances.io import read, read_json
from hindsched.kernel import MALFORMED, RefusedFile
from hindsched.kernel.__main__ import Document
from hindsched.models.base import RUN
from hindsched.models.futures import Futures
from hindsched.online.registry import build_algorithm
from hindsched.solutions.base import Solution, read_solution


def verify_foresight(folder: str | Path) -> list[str]:
    """Check a folder without a solver: what does not follow from its files, a line each."""
    return read_foresight(folder)[0]


def read_foresight(folder: str | Path) -> tuple[list[str], Foresight | None]:
    """What does not follow from the files of a folder, and what does; None if they are of others.

    Ends of intervals that no file proves are as stated, within what the files do prove.
    """
    place = Path(folder)
    data = read_json(place / RESULT)
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InputError(f"{folder}/{RESULT}", "format", f"must be {FORMAT}")
    try:
        errors, found = _made_again(place, data)
        if found is not None:
            errors += differences(data, found.result())
    except (*MALFORMED, RefusedFile) as error:
        raise InputError(f"{folder}/{RESULT}", str(error), "must be as it was written") from None
    return errors, found


def _made_again(place: Path, data: dict[str, Any]) -> tuple[list[str], Foresight | None]:
    rows, policies, formulation = data["scenarios"], data["policies"], str(data["formulation"])
    instances = [read(place / f"future-{n}.json") for n in range(len(rows))]
    instances[0].check_formulation(formulation)
    futures = Futures.of(instances, [float(row["probability"]) for row in rows])
    if len(futures) != len(rows) or (place / f"future-{len(rows)}.json").exists():
        return ["the futures are not those of the files, each once"], None
    up, errors, certificates = futures.sense == "max", list[str](), dict[str, Any]()
    attained, far = ("lower", "upper") if up else ("upper", "lower")
    for name in data["certified"]:
        path = place / f"certificate-{name}.json"
        certificates[name] = read_json(path)
        errors += _certificate_errors(path, name, certificates[name], data, futures)
    if errors:
        return errors, None

    def schedule(stem: str, n: int, relaxes: bool = False) -> Solution | None:
        """What is done in a future, by its file."""
        path = place / f"{stem}-{n}.json"
        if not path.exists():
            return None
        solution = read_solution(path, instances[n])
        if read_json(path)["instance"] != instances[n].name:
            errors.append(f"{path.name}: instance: must be {instances[n].name}")
        errors.extend(f"{path.name}: breaks {line}" for line in solution.violations()[:1])
        if solution.formulation != formulation and not relaxes:
            errors.append(f"{path.name}: formulation: is not that of {RESULT}")
        return solution

    def strategy(stem: str, relaxes: bool = False) -> Strategy | None:
        """What a policy does in every future."""
        made = [schedule(stem, n, relaxes) for n in range(len(rows))]
        known = [solution for solution in made if solution is not None]
        if len(known) < len(made):
            return None
        return Strategy(tuple(solution.objective() for solution in known), known)

    shares = [float(share) for share in data["mixture"]]
    policy, pure = strategy("policy"), strategy("pure")
    mixture = [strategy(f"mixture-{n}") for n in range(len(shares))]
    for each in (policy, pure, *mixture):
        errors += [] if each is None else peeking(futures, each.schedules, policies)
    if None in mixture or (shares and abs(fsum(shares) - 1) > DIGITS) or min([0.0, *shares]) < 0:
        errors.append("mixture: must be policies with probabilities")
    runs, number = dict[str, list[Strategy]](), len(shares)
    for row in data["algorithms"]:
        built = build_algorithm(futures.instances[0].family, row["algorithm"], {})
        made = [strategy(f"run-{number + k}", built.relaxes(formulation))
                for k in range(int(row["runs"]))]  # fmt: skip
        known, number = list(filter(None, made)), number + len(made)
        runs[row["algorithm"]] = known
        if len(known) < len(made) or not made:
            errors.append(f"run-*.json: {row['algorithm']}: runs are absent")
        if not built.card.clairvoyant:
            errors += [line for each in known for line in peeking(futures, each.schedules, RUN)]
    if errors:
        return errors, None
    exact = states = None
    if DETERMINISTIC in certificates:
        states = game_of(futures.instances, policies, formulation)
        exact = [states.alone(s)[0] for s in range(len(rows))]
    clairvoyant, optima = [schedule("hindsight", n) for n in range(len(rows))], list[Bounds]()
    for n, (solution, row) in enumerate(zip(clairvoyant, rows, strict=True)):
        ends = {attained: None if solution is None else solution.objective(),
                far: row["optimum"][far] if exact is None else exact[n]}  # fmt: skip
        optima.append(Bounds(**ends))
    value = None if policy is None else policy.expected(futures.probabilities)
    hindsight = expected_bounds(optima, futures.probabilities)
    best = no_better_than_hindsight(Bounds(**{attained: value, far: data["best_online"][far]}),
                                    hindsight, up)  # fmt: skip
    mixing = tuple(zip(shares, filter(None, mixture), strict=True))
    mean = Strategy(tuple(mean_values(mixing, len(rows))))
    promised = share_of(mean, optima, up) if shares else None
    mixed = Guarantee(
        clipped(Bounds(**{attained: promised, far: data["guarantee"][far]}), up),
        _likely_weights(data, futures, optima), mixing,
    )  # fmt: skip
    end = data["guarantee_deterministic"][far]
    if states is not None and exact is not None:
        fixed = Guarantee(Bounds(**{attained: states.deterministic(exact), far: end}))
    else:
        known = [] if pure is None else [pure]
        fixed = no_better_than(Bounds(**{far: end}), mixed.interval, known, optima, up)
    answers = PolicyAnswers(best, policy, mixed, fixed, certificates)
    return errors, assemble_result(
        futures, policies, formulation, optima, answers, runs, clairvoyant, 0.0
    )


def _likely_weights(
    data: dict[str, Any], futures: Futures, optima: Sequence[Bounds]
) -> tuple[float, ...]:
    """Weights of the futures' values, of the mixture that is stated."""
    likely = [data["distribution"].get(instance.name, 0.0) for instance in futures.instances]
    return tuple(p / (o.upper or 1.0) for p, o in zip(likely, optima, strict=True))


def _certificate_errors(
    path: Path, name: str, certificate: Any, data: dict[str, Any], futures: Futures
) -> list[str]:
    expected = {"bound": data["certified"][name], "claim": name, "policies": data["policies"],
                "formulation": data["formulation"]}  # fmt: skip
    differing = [key for key, value in expected.items() if certificate[key] != value]
    errors = [f"{path.name}: {key}: is not that of {RESULT}" for key in differing]
    weights = {row["instance_sha256"]: row["weight"] for row in certificate["scenarios"]}
    for instance, share in zip(futures.instances, futures.probabilities, strict=True):
        stated = weights.get(instance.sha256(), -1.0)
        if name == EXPECTED and abs(stated - share) > DIGITS:
            errors.append(f"{path.name}: weights: must be the probabilities")
            break
    known = map(document_of_instance, futures.instances)
    check = exact_check_of([Document(path.name, certificate), *known])
    if check is not None and check.code:
        errors.append(f"{path.name}: {check.verdict}")
    return errors


def differences(stated: object, derived: object, where: str = "") -> list[str]:
    """Where two objects of JSON are not the same, but for the last digits of numbers."""
    derived = json.loads(json.dumps(derived)) if not where else derived
    if isinstance(stated, dict) and isinstance(derived, dict):
        lines = [f"{where}{key}: is no key" for key in stated.keys() ^ derived.keys()]
        for key in stated.keys() & derived.keys():
            lines += differences(stated[key], derived[key], f"{where}{key}: ")
        return sorted(lines)
    if isinstance(stated, list) and isinstance(derived, list) and len(stated) == len(derived):
        return [line for n, pair in enumerate(zip(stated, derived, strict=True))
                for line in differences(*pair, f"{where}{n}: ")]  # fmt: skip
    numbers = type(stated) is type(derived) is float
    if numbers and isclose(stated, derived, rel_tol=DIGITS):  # type: ignore[arg-type]
        return []
    same = stated == derived and type(stated) is type(derived)
    return [] if same else [f"{where}{stated!r} is stated, {derived!r} follows"]
