"""Where a search begins: gadgets, draws, files, and the worst instance of an earlier sweep."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hindsched.analysis.worst.adversarial_patterns import gadgets
from hindsched.errors import InputError
from hindsched.instances.base import Instance
from hindsched.instances.io import read
from hindsched.instances.search.space import SearchSpace
from hindsched.json_types import Draft

if TYPE_CHECKING:
    from hindsched.analysis.store import ResultStore

GADGETS, RANDOM = "gadgets", "random"
DEFAULT_STARTS = (GADGETS, RANDOM)

Start = str | Path | Instance


def find_starts(
    space: SearchSpace, starts: Sequence[Start], algorithm: str
) -> list[tuple[str, Draft]]:
    """Candidates to begin from, each with what it is; draws are the search's own.

    Parameters
    ----------
    space : SearchSpace
        The space, into whose ranges files are brought.
    starts : sequence of str, Path or Instance
        ``gadgets``, ``random``, instances or their files, and folders: of a witness, or of results
        of ``bench``, whose worst instance for the algorithm is taken.
    algorithm : str
        Its name.

    Raises
    ------
    InputError
        For a start that is none of these.
    """
    found: list[tuple[str, Draft]] = []
    for start in starts:
        if isinstance(start, Instance):
            found.append((start.name, space.adopt(start)))
        elif start == GADGETS:
            found += [(f"gadget {n}", data) for n, data in enumerate(gadgets(space), 1)]
        elif start != RANDOM:
            found.append((str(start), space.adopt(_instance_at(Path(start), algorithm))))
    return found


def _instance_at(path: Path, algorithm: str) -> Instance:
    if not path.exists():
        rule = f"must be {GADGETS}, {RANDOM}, an instance file or a folder of results"
        raise InputError("start", str(path), rule)
    if not path.is_dir():
        return read(path)
    if (path / "witness.json").exists():
        return read(path / "instance.json")
    from hindsched.analysis.store import ResultStore

    return _worst_of(ResultStore.open(path), algorithm)


def _worst_of(store: ResultStore, algorithm: str) -> Instance:
    """The instance of a sweep with the largest proven ratio of an algorithm."""
    from hindsched.analysis.comparison import Comparison

    def ratio(item: Any) -> float:
        rows = [row for row in item.algorithms if row.algorithm == algorithm]
        ends = [row.ratio.interval.lower for row in rows]
        return max((end for end in ends if end is not None), default=-1.0)

    compared = Comparison(store.records()).instances
    best = max(compared, key=ratio, default=None)
    if best is None or ratio(best) < 0:
        raise InputError("start", str(store.folder), f"must hold results of {algorithm}")
    return next(item for item in store.instances() if item.name == best.instance)
