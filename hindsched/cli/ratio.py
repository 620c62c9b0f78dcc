"""``hindsched ratio``: what online algorithms lose on one instance."""

from __future__ import annotations

import hindsched as hs
from hindsched.analysis.tables import cell
from hindsched.cli import settings as opt
from hindsched.cli.output import console, emit_json, say, show_rows


def ratio(
    file: opt.File,
    algorithm: opt.Algorithms = None,
    settings: opt.Settings = None,
    time_limit: opt.TimeLimit = None,
    speed: opt.Speed = None,
    as_json: opt.Json = False,
) -> int:
    """Bound the competitive ratio of online algorithms on an instance.

    The time limit is that of each offline solve, and of each run.
    """
    from hindsched.analysis.ratio import INVERSE_NOTE, SPEED_NOTE
    from hindsched.instances.catalogue import shown_name
    from hindsched.online.protocol import unmet

    instance = opt.load_instance(file)
    comparison = hs.ratio(
        instance, algorithm, settings=opt.parse_settings(settings, "speed"), speed=speed,
        time_limit=time_limit, run_limit=time_limit, threads=1,
        progress=console("stderr").is_terminal,
    )  # fmt: skip
    if as_json:
        emit_json(comparison.to_dict())
    else:
        name, optimum = shown_name(instance), comparison.optimum
        say(f"{name}: optimum in {optimum.interval} ({optimum.status}, {optimum.proof})")
        rows = []
        for row in comparison.algorithms:
            lower, upper = row.ratio.interval.ends()
            promised = row.theorem and f"{row.theorem['kind']} {cell(row.theorem['value'])}"
            rows.append({
                "algorithm": row.algorithm, "objective": row.objective, "ratio >=": lower,
                "ratio <=": upper, "OPT - ALG": str(row.ratio.difference), "theorem": promised,
                "note": row.ratio.reason or "; ".join(row.errors),
            })  # fmt: skip
        show_rows(name, rows)
        for row in comparison.algorithms:
            if missing := unmet(row.theorem):
                say(f"{row.algorithm}: of what its theorem assumes, fails: {'; '.join(missing)}.")
        if speed is not None:
            say(SPEED_NOTE)
        say(INVERSE_NOTE)
    for line in comparison.errors:
        say(f"failed: {line}")
    return 1 if comparison.errors else 0
