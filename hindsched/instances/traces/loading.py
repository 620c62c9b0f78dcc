"""Finding a trace's loader by the name of its format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hindsched.errors import InputError
from hindsched.instances.traces.alibaba import load_alibaba_2020, load_alibaba_2023
from hindsched.instances.traces.chronus import load_chronus
from hindsched.instances.traces.elasticflow import load_elasticflow
from hindsched.instances.traces.helios import load_helios
from hindsched.instances.traces.philly import load_philly
from hindsched.instances.traces.table import TraceTable

LOADERS: dict[str, Callable[[Path], TraceTable]] = {
    "elasticflow": load_elasticflow,
    "philly": load_philly,
    "chronus": load_chronus,
    "helios": load_helios,
    "alibaba-2020": load_alibaba_2020,
    "alibaba-2023": load_alibaba_2023,
}


def load_trace(path: str | Path, trace_format: str, part: str | None = None) -> TraceTable:
    """Load a trace.

    Parameters
    ----------
    path : str or Path
        File or folder.
    trace_format : str
        One of `LOADERS`.
    part : str, optional
        Only this cluster, virtual cluster or file of the trace.

    Raises
    ------
    InputError
        For an unknown format or part, or a file that is not of the format.

    Examples
    --------
    >>> import hindsched as hs
    >>> from pathlib import Path
    >>> rows = ["job_id,submission_time,duration,num_gpu", "a,0,600,1", "b,60,0,2"]
    >>> _ = Path("jobs.csv").write_text(chr(10).join(rows))
    >>> table = hs.load_trace("jobs.csv", "elasticflow")
    >>> len(table), table.reasons()
    (1, {'duration not above 0': 1})
    """
    if trace_format not in LOADERS:
        raise InputError("trace_format", trace_format, f"must be one of {', '.join(LOADERS)}")
    source = Path(path)
    if not source.exists():
        raise InputError(str(path), "(absent)", "must be a file or folder")
    table = LOADERS[trace_format](source)
    return table if part is None else table.part(part)
