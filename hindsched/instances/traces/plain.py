"""Plain tables: a row a run, with columns that the user names."""

from __future__ import annotations

import pandas as pd

from hindsched.instances.traces.cells import DELIMITERS, Format, Reading

ROLES = (
    "job", "submit", "start", "end", "gpus", "duration", "deadline", "weight", "user", "server",
)  # fmt: skip
AUTO = "auto"


def read(reading: Reading) -> pd.DataFrame:
    """Read a CSV file; several rows of one job are its runs, or its parts on several servers."""
    word = reading.choice("delimiter", (AUTO, *DELIMITERS))
    return reading.table(DELIMITERS.get(word, ""), what=FORMAT.what).standard()


FORMAT = Format(
    name="csv",
    what="a table with a header",
    read=read,
    columns={role: role for role in ROLES},
    needed=("job", "submit", "start", "end", "gpus"),
    settings={"delimiter": (AUTO, f"what separates cells: auto, {', '.join(DELIMITERS)}")},
)
