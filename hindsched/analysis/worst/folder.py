"""A witness as a folder: files that ``hindsched verify`` and the exact kernel judge by themselves.

====================  ==========================================================================
``instance.json``     the instance
``run.json``          the algorithm's schedule; ``run-sN.json`` for each seed of a randomised one
``reference.json``    the better schedule
``certificate.json``  prices or a tree that bound the optimum, if there are
``witness.json``      the claim: ratio, theorem, how it was found
``witness.txt``       what goes wrong, in words
``schedules.png``     both schedules, where matplotlib is installed
====================  ==========================================================================
"""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

from hindsched.analysis.exact import exact_check
from hindsched.analysis.jsonable import jsonable
from hindsched.analysis.plots.style import has_matplotlib, save
from hindsched.analysis.verify import verify
from hindsched.analysis.worst.evaluate import quotient
from hindsched.analysis.worst.facts import Facts
from hindsched.analysis.worst.pictures import plot_both
from hindsched.analysis.worst.words import explain
from hindsched.errors import InputError
from hindsched.instances.io import read, read_json, write, write_json, write_text
from hindsched.json_types import JsonObject
from hindsched.kernel.__main__ import FAMILIES as KERNEL_FAMILIES
from hindsched.solutions.base import write_solution
from hindsched.solvers.certificates.file import write_certificate

INSTANCE, REFERENCE, CERTIFICATE = "instance.json", "reference.json", "certificate.json"
CLAIM, WORDS, PICTURE = "witness.json", "witness.txt", "schedules.png"
AGREEMENT = 1e-6


def write_witness(witness: Facts, folder: str | Path) -> None:
    """Write a witness; files of an earlier one in the folder are replaced."""
    place = Path(folder)
    for old in place.glob("run*.json"):
        old.unlink()
    (place / CERTIFICATE).unlink(missing_ok=True)
    write(witness.instance, place / INSTANCE)
    for run in witness.runs:
        produced_by = {
            "algorithm": run.algorithm, "options": dict(run.settings), "seed": run.seed
        }  # fmt: skip
        name = "run.json" if len(witness.runs) == 1 else f"run-s{run.seed}.json"
        write_solution(run.solution, place / name, jsonable(produced_by))
    write_solution(witness.reference, place / REFERENCE, {"by": witness.reference_by})
    if witness.certificate is not None:
        write_certificate(witness.certificate, place / CERTIFICATE)
    write_json(jsonable(witness.to_dict()), place / CLAIM)
    write_text(explain(witness) + "\n", place / WORDS)
    if has_matplotlib():
        save(plot_both(witness), place / PICTURE)


def check_witness(folder: str | Path, *, exact: bool = True) -> JsonObject:
    """Check a witness from its files alone: no search, no solver, no algorithm.

    Parameters
    ----------
    folder : str or Path
        What `write_witness` wrote, from whomever.
    exact : bool
        Whether the exact kernel judges the schedules too, for families that it knows.

    Returns
    -------
    dict
        ``ratio`` (recomputed), ``claimed``, ``files`` (their objectives) and ``exact`` (the
        kernel's verdicts, None where it was not asked).

    Raises
    ------
    InputError
        If a file is malformed, a schedule is infeasible though it claims otherwise, or the ratio is
        not the one that is claimed.

    Examples
    --------
    >>> import hindsched as hs
    >>> found = hs.worst("oasis", "fifo", preset="one-slot", work_limit=60)
    >>> write_witness(found, "witness")
    >>> round(hs.check_witness("witness", exact=False)["ratio"], 6)
    10.0
    """
    place = Path(folder)
    instance = read(place / INSTANCE)
    claimed = read_json(place / CLAIM)
    runs = sorted(place.glob("run*.json"))
    if not runs or not isinstance(claimed, dict):
        raise InputError(str(place), "(no run*.json)", "must be the folder of a witness")
    files = [*runs, place / REFERENCE]
    found = {path.name: verify(instance, path) for path in files}
    reference = found[REFERENCE]
    if not reference.is_feasible:
        raise InputError(REFERENCE, str(reference.violations[0]), "must break no constraint")
    objective = fmean(found[path.name].objective for path in runs)
    level = reference.objective
    ratio = quotient(instance.sense, objective, level)
    told = (claimed.get("ratio") or {}).get("lower")
    said = float("inf") if told == "inf" else told
    if not isinstance(said, int | float) or not _agree(ratio, float(said)):
        raise InputError(f"{CLAIM}: ratio.lower", told, f"the schedules have the ratio {ratio!r}")
    verdicts = None
    if exact and instance.family in KERNEL_FAMILIES:
        verdicts = {}
        for path in files:
            answer = exact_check(place / INSTANCE, path)
            verdicts[path.name] = None if answer is None else answer.verdict
            if answer is not None and answer.code and found[path.name].is_feasible:
                raise InputError(path.name, answer.verdict, "must hold for the exact kernel")
    return {
        "ratio": ratio,
        "claimed": said,
        "files": {name: item.objective for name, item in found.items()},
        "exact": verdicts,
    }


def _agree(first: float, second: float) -> bool:
    return first == second or abs(first - second) <= AGREEMENT * max(1.0, abs(first))
