"""The same bound by HiGHS' simplex, interior point and PDLP, and by prices.

Run it with ``python benchmarks/pdlp.py [--seconds S]``. The linear programs are relaxations of the
offline program; their duals are prices, and what those prove by best responses is certified. The
seconds are those of the processor, so that a busy machine changes little.
"""

from __future__ import annotations

import argparse
import os
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from marked import write_between

import hindsched as hs

PAGE = Path("docs/results/scale.md")
MARK = "<!-- pdlp: made by benchmarks/pdlp.py -->"
SIZES = ((10, 10, 5), (20, 20, 10), (40, 40, 20))
"""Jobs, slots and servers of each role."""
WAYS = {
    "simplex": ("relaxation", {"solver": "simplex"}),
    "interior point": ("relaxation", {"solver": "ipx"}),
    "PDLP": ("relaxation", {"solver": "pdlp", "pdlp_optimality_tolerance": 1e-9}),
    "prices (subgradient)": ("bound", {}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=120.0, help="limit of each solve")
    chosen = parser.parse_args()
    today = datetime.now(UTC).date().isoformat()
    lines = [f"Measured on {today}, {os.cpu_count()} cores, processor seconds, one thread,"
             f" highspy {version('highspy')}; limit {chosen.seconds:g} s by the clock.", "",
             "| jobs, slots, servers | by | seconds | linear program | certified bound |",
             "|---|---|---|---|---|"]  # fmt: skip
    measure(hs.generate("oasis", seed=1, jobs=2, horizon=4, servers=2), chosen.seconds)  # compile
    for jobs, horizon, servers in SIZES:
        instance = hs.generate("oasis", seed=1, jobs=jobs, horizon=horizon, servers=servers)
        for name, cells in measure(instance, chosen.seconds):
            row = f"| {jobs}, {horizon}, {servers} + {servers} | {name} | {' | '.join(cells)} |"
            print(row, flush=True)
            lines.append(row)
    write_between(PAGE, MARK, lines)


def measure(instance: hs.Instance, seconds: float) -> list[tuple[str, list[str]]]:
    """Name and cells of a row by each way."""
    found = []
    for name, (method, options) in WAYS.items():
        began = time.process_time()
        result = hs.solve(instance, method, time_limit=seconds, threads=1, solver_options=options)
        spent = time.process_time() - began
        value = result.details.get("linear_bound")
        proven = None if result.certificate is None else result.certificate.bound
        shown = ["-" if number is None else f"{number:.2f}" for number in (value, proven)]
        why = "" if result.certificate else f" ({result.details.get('refused', result.stopped_by)})"
        found.append((name, [f"{spent:.3g}{why}", *shown]))
    return found


if __name__ == "__main__":
    main()
