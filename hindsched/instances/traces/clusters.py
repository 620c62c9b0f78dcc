"""Tables beside the jobs of published traces: server shapes, tenants' quotas, measured speeds."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from hindsched.errors import InputError
from hindsched.instances.files import decoded, read_bytes
from hindsched.instances.traces.cells import read_table
from hindsched.instances.traces.published import members

PAI_MACHINE = ("machine", "gpu_type", "cap_cpu", "cap_mem", "cap_gpu")
MODEL = re.compile(r"^(?P<model>.*?)(?: \(batch size (?P<batch>\d+)\))?$")


@dataclass(frozen=True)
class ServerShape:
    """A kind of server and how many there are.

    Parameters
    ----------
    model : str
        GPU model, empty for none.
    gpus : int
        GPUs.
    cpus : float
        CPU cores.
    memory_gb : float
        Memory in GB.
    count : int
        Servers of this shape.
    """

    model: str
    gpus: int
    cpus: float
    memory_gb: float
    count: int


def load_server_shapes(path: str | Path) -> list[ServerShape]:
    """Server shapes from PAI's machine table (CSV or tar.gz, no header) or an openb node list.

    Returns
    -------
    list of ServerShape
        Most frequent first.
    """
    source = Path(path)
    if ".tar" in source.name or source.name.endswith(".tgz"):
        found = members(source)
        if not found:
            raise InputError(str(source), "(no file)", "must be a tar archive of a table")
        text = decoded(next(iter(found.values())), str(source))
    else:
        text = decoded(read_bytes(source)[0], str(source))
    is_pai = ".tar" in source.name or "pai_machine" in source.name
    frame = _frame(f"{','.join(PAI_MACHINE)}\n{text}" if is_pai else text, source, ())
    if is_pai:
        model, names = frame["gpu_type"].replace("CPU", ""), ("cap_gpu", "cap_cpu", "cap_mem")
        scales = (1, 1, 1)
    else:
        _need(frame, source, ("sn", "cpu_milli", "memory_mib", "gpu", "model"))
        model, names = frame["model"], ("gpu", "cpu_milli", "memory_mib")
        scales = (1, 1000, 1024)
    numbers = [_numbers(frame[n]) / scale for n, scale in zip(names, scales, strict=True)]
    bad = pd.concat(numbers, axis=1).isna().any(axis=1)
    if bad.any():
        row = int(bad.to_numpy().argmax()) + 1
        raise InputError(f"{source}:{row}", "(no number)", "capacities must be numbers")
    keys = zip(model, numbers[0].astype(int), *numbers[1:], strict=True)
    counts = pd.Series([(str(m), int(g), float(c), float(b)) for m, g, c, b in keys]).value_counts()
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [ServerShape(*shape, count=int(count)) for shape, count in ordered]  # type: ignore[misc]


def load_daily_quotas(path: str | Path) -> pd.DataFrame:
    """GPUs of each virtual cluster of Helios by day.

    Parameters
    ----------
    path : str or Path
        CSV with the columns ``date``, one a virtual cluster, and ``total``.

    Returns
    -------
    DataFrame
        Index ``date``, a column of whole numbers a virtual cluster (without ``total``).

    Raises
    ------
    InputError
        If a number is missing or negative, or a row does not add up to its total.
    """
    source = Path(path)
    frame = _read(source, ("date", "total"))
    quotas = frame.drop(columns=["date", "total"]).apply(_numbers)
    total = _numbers(frame["total"])
    bad = quotas.isna().any(axis=1) | (quotas < 0).any(axis=1)
    wrong = quotas.sum(axis=1) != total
    for mask, column, rule in (
        (bad, "date", "quotas must be numbers >= 0"),
        (wrong, "total", "quotas must add up to total"),
    ):
        if mask.any():
            row: Any = mask.idxmax()
            raise InputError(f"{source}:{row}", frame[column][row], rule)
    return quotas.astype(int).set_axis(pd.Index(frame["date"], name="date"), axis=0)


def load_virtual_clusters(path: str | Path) -> dict[str, int]:
    """Nodes by virtual cluster of Philly, from a CSV with the columns ``vc`` and ``node num``."""
    source = Path(path)
    frame = _read(source, ("vc", "node num"))
    nodes = _numbers(frame["node num"])
    for row, (name, count) in enumerate(zip(frame["vc"], nodes, strict=True), start=1):
        if not count > 0 or count != int(count):
            raise InputError(f"{source}:{row}", count, f"{name} must have a whole number of nodes")
    return {str(name): int(count) for name, count in zip(frame["vc"], nodes, strict=True)}


def load_capacities(path: str | Path, date: str | None, gpus_a_node: int) -> dict[str, int]:
    """GPUs by virtual cluster from either table: Philly's nodes, or a day of Helios' quotas.

    Parameters
    ----------
    path : str or Path
        The table.
    date : str, optional
        Day of a table by day; its first if not given.
    gpus_a_node : int
        GPUs of a node, where the table counts nodes.
    """
    if "vc" in _read(Path(path), ()).columns:
        if date is not None:
            raise InputError("set.date", date, "is for tables by day only")
        return {name: gpus_a_node * n for name, n in load_virtual_clusters(path).items()}
    quotas = load_daily_quotas(path)
    day = quotas.index[0] if date is None else date
    if day not in quotas.index:
        raise InputError("set.date", day, f"must be in {quotas.index[0]}..{quotas.index[-1]}")
    return {str(name): int(count) for name, count in quotas.T[day].items()}


def load_throughputs(path: str | Path) -> pd.DataFrame:
    """Mini-batches a second by model, GPU type and scale that Gavel's authors measured (OSDI 2020).

    Only isolated runs are read; pairs that share a GPU are left out.

    Parameters
    ----------
    path : str or Path
        ``simulation_throughputs.json`` (plain or gzip).

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
    rule = "must be Gavel's throughputs"
    rows = []
    try:
        for gpu_type, runs in json.loads(decoded(read_bytes(path)[0], str(path))).items():
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
    except InputError:
        raise
    except RecursionError:
        raise InputError(str(path), "(nested too deep)", rule) from None
    except (AttributeError, KeyError, SyntaxError, TypeError, ValueError) as error:
        raise InputError(str(path), str(error), rule) from None
    if not rows:
        raise InputError(str(path), "(no run)", rule)
    frame = pd.DataFrame(rows).query("minibatches_per_second > 0")
    order = ["model", "batch_size", "gpu_type", "gpus"]
    return frame.sort_values(order, kind="stable").reset_index(drop=True)


def _read(source: Path, needed: tuple[str, ...]) -> pd.DataFrame:
    return _frame(decoded(read_bytes(source)[0], str(source)), source, needed)


def _frame(text: str, source: Path, needed: tuple[str, ...]) -> pd.DataFrame:
    frame = read_table(text, str(source), ",")[1].fillna("")
    _need(frame, source, needed)
    return frame.drop(columns="(cells)")


def _need(frame: pd.DataFrame, source: Path, needed: tuple[str, ...]) -> None:
    missing = [column for column in needed if column not in frame]
    if missing:
        found = ", ".join(column for column in map(str, frame.columns) if column != "(cells)")
        rule = f"lacks the column{'s' * (len(missing) > 1)} {', '.join(missing)}"
        raise InputError(str(source), found, rule)


def _numbers(cells: pd.Series) -> pd.Series:
    return pd.to_numeric(cells, errors="coerce")
