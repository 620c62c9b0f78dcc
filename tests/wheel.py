"""Build the source archive and from it the wheel; install that apart, use it in an empty folder."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INSTANCE = ROOT / "tests" / "data" / "instances" / "oasis-t10-i10-h25-s0.json"


def run(*command: object, cwd: Path) -> str:
    """Run a command, show what it says if it fails, and return its standard output."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> None:
    """Install the wheel into a fresh environment and run the main commands there."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        run(sys.executable, "-m", "build", "--outdir", work / "dist", ROOT, cwd=work)
        wheel = next((work / "dist").glob("*.whl"))
        # The dependencies come from the present environment; the package itself does not.
        run(sys.executable, "-m", "venv", "--system-site-packages", work / "venv", cwd=work)
        python = work / "venv" / "bin" / "python"
        site = run(sys.executable, "-c", "import site; print(site.getsitepackages()[0])", cwd=work)
        new = run(python, "-c", "import site; print(site.getsitepackages()[0])", cwd=work).strip()
        pip = (sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", new)
        run(*pip, wheel, cwd=work)
        Path(new, "dependencies.pth").write_text(site, encoding="utf-8")

        where = run(python, "-c", "import hindsched; print(hindsched.__file__)", cwd=work)
        assert str(work) in where, f"imported from {where}"
        checker = (sys.executable, "-m", "mypy", "--strict", "--cache-dir", work / "types")
        run(*checker, "--python-executable", python, ROOT / "tests" / "typed_user.py", cwd=work)
        command = (python, "-m", "hindsched")
        run(*command, "schema", "oasis", cwd=work)
        run(*command, "new-family", "mine", cwd=work)
        assert (work / "hindsched-mine" / "hindsched_mine" / "kernel.py").exists()
        simulate = (*command, "simulate", INSTANCE, "--algorithm", "oasis", "--json")
        answer = json.loads(run(*simulate, cwd=work))
        assert answer["violations"] == []
        solve = (*command, "solve", INSTANCE, "--time-limit", 60, "--json")
        answer = json.loads(run(*solve, cwd=work))
        assert answer["objective"] <= 182.36 <= answer["bound"] * (1 + 1e-4), answer
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
