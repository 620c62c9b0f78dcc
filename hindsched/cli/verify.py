"""``hindsched verify``: a solution, a bound or a folder of results checked without a solver."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import hindsched as hs
from hindsched.cli import settings as opt
from hindsched.cli.output import answer, emit_json, say, tell
from hindsched.errors import InputError
from hindsched.instances.io import read_json
from hindsched.json_types import JsonObject


def verify(
    file: Annotated[str, opt.argument("Instance: file, - or name; or a results' folder.")],
    solution: Annotated[str | None, opt.argument("Solution file.")] = None,
    prices: Annotated[list[str] | None, opt.option("Certificate; may be repeated.")] = None,
    exact: Annotated[
        bool | None, opt.option("Wait for the exact kernel, or do without.", "--exact/--fast")
    ] = None,
    as_json: opt.Json = False,
) -> int:
    """Check a solution, and bounds, without any solver; exit code 1 if it is infeasible.

    Two checkers answer: a fast one in floating point that rounds outward, and the exact kernel,
    which has no tolerance and whose answer counts.
    """
    from hindsched.analysis.verify import QUICK_SECONDS, document, exact_check
    from hindsched.kernel import has_family

    if Path(file).is_dir() and solution is None:
        return _verify_folder(file, as_json)
    if solution is None:
        raise InputError("solution", "(absent)", "is required beside an instance")
    certificates = prices or []
    if "" in certificates:
        raise InputError("prices", "", "must be a certificate file")
    instance = opt.load_instance(file)
    claim, *proofs = map(document, (solution, *certificates))
    checked = hs.verify(instance, claim, proofs)
    kernel, is_asked = None, exact or (exact is None and has_family(instance.family))
    if is_asked:
        judged = claim._replace(known=checked.verdict)
        kernel = exact_check(instance, judged, *proofs, seconds=None if exact else QUICK_SECONDS)
    hidden = ["violations", "claims_less"]
    hidden += ["certificate", "leaves", "proves_optimal"] if checked.kind is None else []
    more = {"exact": None if kernel is None else kernel.to_dict()}
    code = 0 if checked.is_feasible else 1
    if answer(as_json, checked.to_dict(), more, hidden=hidden, instance=instance):
        for stated, proven in checked.claims_less:
            tell(f"stated {stated!r}, weaker than the bound that the prices prove: {proven!r}")
        if checked.proves_optimal:
            tell("solution and certificate together prove: this solution is optimal")
        for violation in checked.violations:
            tell(f"  breaks {violation}")
        if kernel is not None:
            tell(f"exact kernel: {kernel.verdict}")
        elif is_asked:
            say("fast check only; --exact lets the exact kernel finish")
    elif kernel is not None and kernel.code:
        say(f"exact kernel: {kernel.verdict}")
    return code if kernel is None else kernel.code or code


def _verify_folder(folder: str, as_json: bool) -> int:
    """Recompute what a folder of results says; what does not follow from its files, a line each."""
    from hindsched.analysis.adversary.folder import verify_adversary
    from hindsched.analysis.foresight.folder import verify_foresight
    from hindsched.analysis.score.judge import read_score, verify_score
    from hindsched.analysis.store import ResultStore
    from hindsched.analysis.worst import check_witness

    wrong: list[str] = []
    if (Path(folder) / "witness.json").exists():
        data: JsonObject = {**check_witness(folder), "wrong": wrong}
        sentence = f"the schedules have the ratio {data['ratio']!r}, as is claimed"
    elif (Path(folder) / "score.json").exists():
        wrong, stated = verify_score(folder), read_score(folder)["combined_score"]
        data = {"combined_score": stated, "wrong": wrong}
        follows = "does not follow" if wrong else "follows"
        sentence = f"score {stated!r} {follows} from the folder's schedules and certificates"
    elif (Path(folder) / "adversary.json").exists():
        wrong = verify_adversary(folder)
        data = {"wrong": wrong}
        sentence = "what nobody can do " + ("does not follow" if wrong else "follows")
        sentence += _on_a_solvers_word(folder)
    elif (Path(folder) / "foresight.json").exists():
        wrong = verify_foresight(folder)
        data = {"wrong": wrong}
        sentence = "policies and certificates " + ("do not hold" if wrong else "hold")
        sentence += _on_a_solvers_word(folder)
    else:
        store = ResultStore.open(folder)
        records, doubtful = len(store.records()), store.recompute()
        wrong = [f"{task}: {what}" for task, what in (store.damages() | doubtful).items()]
        data = {"records": records, "damages": wrong}
        sentence = (
            f"{records - len(doubtful)} records say what their schedules and certificates say"
        )
    if as_json:
        emit_json(data)
    else:
        for line in (*(f"wrong: {line}" for line in wrong), sentence):
            tell(line)
    return 1 if wrong else 0


def _on_a_solvers_word(folder: str) -> str:
    """The ends that no file of the folder proves, with what is stated of them."""
    stated = read_json(Path(folder) / "foresight.json")
    ends = [line.partition(": ")[::2] for line in stated["unproven"]]
    words = [f"{name} {end} {stated[name][end]}" if end else name for name, end in ends]
    return f"; NOT PROVEN, a solver's word alone: {', '.join(words)}" if words else ""
