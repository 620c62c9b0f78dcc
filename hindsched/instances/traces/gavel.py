"""Gavel's measured throughputs (OSDI 2020): mini-batches a second by model, GPU type and scale.

Used for mini-batch times per worker type. Only isolated runs are read; pairs that share a GPU are
left out.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pandas as pd

from hindsched.errors import InputError
from hindsched.instances.traces.reading import trace_json

MODEL = re.compile(r"^(?P<model>.*?)(?: \(batch size (?P<batch>\d+)\))?$")


def load_throughputs(path: str | Path) -> pd.DataFrame:
    """Load ``simulation_throughputs.json`` (plain or gzip).

    Returns
    -------
    DataFrame
        Columns ``gpu_type``, ``model``, ``batch_size`` (0 where the name has none), ``gpus``,
        ``minibatches_per_second``; sorted by them; runs that failed (throughput 0) left out.

    Raises
    ------
    InputError
        If the file is not of this form.
    """
    source = Path(path)
    data = trace_json(source)
    rows = []
    try:
        for gpu_type, runs in data.items():
            for key, partners in runs.items():
                name, gpus = ast.literal_eval(key)
                match = MODEL.match(name)
                if match is None:
                    raise ValueError(f"{name!r} names no model")
                rows.append(
                    {
                        "gpu_type": str(gpu_type),
                        "model": match["model"],
                        "batch_size": int(match["batch"] or 0),
                        "gpus": int(gpus),
                        "minibatches_per_second": float(partners["null"]),
                    }
                )
    except (AttributeError, KeyError, SyntaxError, TypeError, ValueError) as error:
        raise InputError(str(source), str(error), "must be Gavel's throughputs") from None
    if not rows:
        raise InputError(str(source), "(no run)", "must be Gavel's throughputs")
    frame = pd.DataFrame(rows)
    frame = frame[frame["minibatches_per_second"] > 0]
    order = ["model", "batch_size", "gpu_type", "gpus"]
    return frame.sort_values(order, kind="stable").reset_index(drop=True)
