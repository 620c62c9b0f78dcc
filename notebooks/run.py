"""Execute the notebooks and hold their key numbers to those that they show.

Usage: python notebooks/run.py [--quick] [--output FOLDER | --write] [NAME ...]

A cell with the tag ``numbers`` prints the same numbers in every run. ``--write`` puts the outputs of
this run into the notebooks themselves.
"""

import argparse
import base64
import io
import math
import os
import re
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from PIL import Image

HERE = Path(__file__).parent
CELL_TIMEOUT_SECONDS = 1800
DRAWS = re.compile(r"^(?!def )(?:\w+ = )?(?:hs\.plot\.(?!save)\w+\(|experiment\()", re.MULTILINE)
NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?")
COLOURS = 48
SECONDS = re.compile(r"[\d.]+ m?s\b")
"""Times, which are others in every run."""
MOST_BYTES = 300_000
"""Size of a notebook with its outputs."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Execute the notebooks.")
    parser.add_argument("names", nargs="*", help="for example 00_tour; all if absent")
    parser.add_argument("--quick", action="store_true", help="small versions of the experiments")
    parser.add_argument("--output", help="folder for the executed notebooks")
    parser.add_argument("--write", action="store_true", help="keep the outputs in the notebooks")
    arguments = parser.parse_args()
    known = {path.stem: path for path in sorted(HERE.glob("[0-9][0-9]_*.ipynb"))}
    unknown = [name for name in arguments.names if name not in known]
    if unknown:
        print(f"error: {unknown[0]}: must be one of {', '.join(known)}", file=sys.stderr)
        return 2
    os.environ["HINDSCHED_QUICK"] = "1" if arguments.quick else "0"
    folder = HERE if arguments.write else arguments.output
    names = arguments.names or list(known)
    failed = [name for name in names if not execute(known[name], folder, arguments.write)]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def execute(path: Path, folder: Path | str | None, write: bool) -> bool:
    """Run one notebook in a kernel of its own; print what failed."""
    notebook = nbformat.read(path, as_version=4)
    shown = [printed(cell) for cell in notebook.cells]
    client = NotebookClient(
        notebook, timeout=CELL_TIMEOUT_SECONDS, kernel_name="python3",
        resources={"metadata": {"path": str(HERE)}},
    )  # fmt: skip
    begin = time.perf_counter()
    error: object = None
    try:
        client.execute()
    except CellExecutionError as failure:
        error = failure
    error = error or missing_pictures(notebook) or (None if write else moved(notebook, shown))
    if folder is not None:
        keep(notebook, Path(folder) / path.name)
    seconds = time.perf_counter() - begin
    print(f"{path.stem}: {'failed' if error else 'ok'} in {seconds:.1f} s", flush=True)
    if error:
        print(error, file=sys.stderr)
    return error is None


def keep(notebook: nbformat.NotebookNode, path: Path) -> None:
    """Write an executed notebook without what only this run knows."""
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", []):
            picture = output.get("data", {}).get("image/png")
            if picture is not None:
                output.data["image/png"] = smaller(picture)
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)
    if path.stat().st_size > MOST_BYTES:
        print(f"{path.stem}: has {path.stat().st_size:,} bytes, more than {MOST_BYTES:,}")


def smaller(picture: str) -> str:
    """A picture in few colours: a third of the bytes."""
    image = Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB")
    written = io.BytesIO()
    image.quantize(COLOURS, Image.Quantize.MAXCOVERAGE).save(written, format="PNG", optimize=True)
    return base64.b64encode(written.getvalue()).decode()


def printed(cell: nbformat.NotebookNode) -> str:
    """What a cell of key numbers has printed; nothing of other cells."""
    if "numbers" not in cell.metadata.get("tags", []):
        return ""
    return "".join(each.text for each in cell.outputs if each.output_type == "stream")


def moved(notebook: nbformat.NotebookNode, shown: list[str]) -> str | None:
    """Name the first key number that is another one than before."""
    for number, (cell, text) in enumerate(zip(notebook.cells, shown, strict=True)):
        before, now = (
            [float(found.replace(",", "")) for found in NUMBER.findall(SECONDS.sub("", each))]
            for each in (text, printed(cell))
        )
        same = len(before) == len(now) and all(
            math.isclose(a, b, rel_tol=1e-5) for a, b in zip(before, now, strict=True)
        )
        if not same:
            return f"cell {number} shows {text!r}, and now {printed(cell)!r}"
    return None


def missing_pictures(notebook: nbformat.NotebookNode) -> str | None:
    """Name the first cell that draws but shows no picture."""
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type != "code" or not DRAWS.search(cell.source):
            continue
        if not any("image/png" in output.get("data", {}) for output in cell.outputs):
            return f"cell {number} draws but shows no picture: {cell.source.splitlines()[0]}"
    return None


if __name__ == "__main__":
    sys.exit(main())
