"""``hindsched simulate``: one online run."""

from __future__ import annotations

import hindsched as hs
from hindsched.cli import settings as opt
from hindsched.cli.output import answer, tell
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
    as_json: opt.Json = False,
) -> None:
    """Run an online algorithm once; --certificate writes its final prices."""
    instance = opt.load_instance(file)  # what is wrong is said before a solver is loaded
    opt.check_targets([file], output=output, certificate=certificate)
    values = opt.parse_settings(settings)
    with limited(time_limit):
        run = hs.simulate(instance, algorithm, seed=seed, settings=values, formulation=formulation)
    if output is not None:
        produced_by = {"algorithm": algorithm, "options": values, "seed": seed}
        hs.write_solution(run.solution, output, produced_by)
    summary = run.to_dict()
    if certificate is not None:
        from hindsched.solvers.certificates.posted import certificate_of_run

        settings_used = certificate_of_run(run)
        hs.write_certificate(settings_used, certificate)
        summary["bound"] = settings_used.bound
    if answer(as_json, summary, hidden=LEFT_OUT, instance=instance):
        for violation in run.violations:
            tell(f"  breaks {violation}")
