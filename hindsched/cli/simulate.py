"""``hindsched simulate``: one online run."""

from __future__ import annotations

from hindsched.cli import settings as opt
from hindsched.cli.output import Json, emit_json, facts, out, tell
from hindsched.limits import time_limit as limited

LEFT_OUT = ("report", "settings", "violations")


def simulate(
    file: opt.File,
    algorithm: opt.Algorithm,
    seed: opt.Seed = 0,
    settings: opt.Settings = None,
    formulation: opt.Formulation = None,
    time_limit: opt.TimeLimit = None,
    output: opt.Output = None,
    certificate: opt.Certificate = None,
    as_json: Json = False,
) -> None:
    """Run an online algorithm once; --certificate writes its final prices."""
    instance = opt.load(file)  # what is wrong is said before a solver is loaded
    from hindsched.instances.catalogue import shown_name
    from hindsched.online.simulator import simulate as run_online
    from hindsched.solutions.base import write_solution

    opt.check_targets([file], output=output, certificate=certificate)
    values = opt.parse_settings(settings)
    with limited(time_limit):
        result = run_online(
            instance, algorithm, seed=seed, settings=values, formulation=formulation
        )
    if output is not None:
        produced_by = {"algorithm": algorithm, "options": values, "seed": seed}
        write_solution(result.solution, output, produced_by)
    summary = result.to_dict()
    if certificate is not None:
        from hindsched.solvers.certificates.certificate import certificate_of_run
        from hindsched.solvers.certificates.file import write_certificate

        own = certificate_of_run(result)
        write_certificate(own, certificate)
        summary["bound"] = own.bound
    if as_json:
        emit_json(summary)
        return
    shown = {key: summary[key] for key in summary if key not in LEFT_OUT}
    out.print(facts({**shown, "instance": shown_name(instance)}))
    for violation in result.violations:
        tell(f"  breaks {violation}")
