"""Execute the notebooks; the continuous integration runs this with ``--quick``.

Usage: python notebooks/run.py [--quick] [--output FOLDER] [NAME ...]
"""

import argparse
import os
import re
import sys
import time
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

HERE = Path(__file__).parent
CELL_TIMEOUT_SECONDS = 1800
DRAWS = re.compile(r"^(?!def )(?:\w+ = )?(?:hs\.plot\.(?!save)\w+\(|experiment\()", re.MULTILINE)


def main() -> int:
    parser = argparse.ArgumentParser(description="Execute the notebooks.")
    parser.add_argument("names", nargs="*", help="for example 00_tour; all if absent")
    parser.add_argument("--quick", action="store_true", help="small versions of the experiments")
    parser.add_argument("--output", help="folder for the executed notebooks")
    arguments = parser.parse_args()
    scripts = sorted(HERE.glob("[0-9][0-9]_*.py"))
    if arguments.names:
        known = {script.stem: script for script in scripts}
        unknown = [name for name in arguments.names if name not in known]
        if unknown:
            print(f"error: {unknown[0]}: must be one of {', '.join(known)}", file=sys.stderr)
            return 2
        scripts = [known[name] for name in arguments.names]
    os.environ["HINDSCHED_QUICK"] = "1" if arguments.quick else "0"
    failed = [script.stem for script in scripts if not execute(script, arguments.output)]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def execute(script: Path, output: str | None) -> bool:
    """Run one notebook in a kernel of its own; print what failed."""
    notebook = jupytext.read(script)
    client = NotebookClient(
        notebook, timeout=CELL_TIMEOUT_SECONDS, kernel_name="python3",
        resources={"metadata": {"path": str(HERE)}},
    )  # fmt: skip
    begin = time.perf_counter()
    try:
        client.execute()
        error = None
    except CellExecutionError as failure:
        error = failure
    finally:
        if output is not None:
            folder = Path(output)
            folder.mkdir(parents=True, exist_ok=True)
            nbformat.write(notebook, folder / f"{script.stem}.ipynb")
    if error is None:
        error = missing_pictures(notebook)
    seconds = time.perf_counter() - begin
    print(f"{script.stem}: {'failed' if error else 'ok'} in {seconds:.1f} s", flush=True)
    if error:
        print(error, file=sys.stderr)
    return error is None


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
