"""ElasticFlow's raw traces (Microsoft, 2021): ten clusters, one CSV each, in one tar.gz.

Columns: ``job_id``, ``submission_time`` (seconds), ``duration`` (seconds), ``num_gpu``. Jobs under
about 600 seconds were filtered out by the publisher; capacities are not given.
"""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from hindsched.errors import InputError
from hindsched.instances.traces.reading import member_stream, number, read_table
from hindsched.instances.traces.table import TraceTable, build_table

COLUMNS = ("job_id", "submission_time", "duration", "num_gpu")


def load_elasticflow(path: Path) -> TraceTable:
    """Load the tar.gz, a folder of CSV files, or one CSV file; each file is a part."""
    frames = list(_frames(path))
    if not frames:
        raise InputError(str(path), "(no CSV file)", "must hold the clusters' CSV files")
    raw = pd.concat(frames, ignore_index=True)
    return build_table("elasticflow", path, raw)


def _frames(path: Path) -> Iterator[pd.DataFrame]:
    if path.is_dir():
        for file in sorted(path.glob("*.csv*")):
            yield _convert(read_table(file, file, COLUMNS), _part(file.name))
    elif path.name.endswith((".tar.gz", ".tgz", ".tar")):
        try:
            with tarfile.open(path) as archive:
                members = [m for m in archive.getmembers() if m.name.endswith(".csv")]
                for member in sorted(members, key=lambda member: member.name):
                    stream = member_stream(archive, member)
                    frame = read_table(Path(path.name, member.name), stream, COLUMNS)
                    yield _convert(frame, _part(Path(member.name).name))
        except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
            raise InputError(str(path), str(error), "must be a tar archive") from None
    else:
        yield _convert(read_table(path, path, COLUMNS), _part(path.name))


def _part(file_name: str) -> str:
    return file_name.split(".", 1)[0]


def _convert(frame: pd.DataFrame, part: str) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "job": frame["job_id"],
            "part": part,
            "submit_seconds": number(frame, "submission_time"),
            "duration_seconds": number(frame, "duration"),
            "gpus": number(frame, "num_gpu"),
        }
    )
