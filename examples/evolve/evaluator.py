"""An evaluator for searches that write schedulers: OpenEvolve, ShinkaEvolve, SkyDiscover.

- OpenEvolve and SkyDiscover's plain evaluators call ``evaluate(program_path)``.
- ``evaluator.py --program_path P --results_dir R`` writes ``metrics.json`` and ``correct.json``,
  which ShinkaEvolve reads.
- ``evaluator.py P`` prints one JSON object, as ``evaluate.sh`` of SkyDiscover's containers must.

Environment: ``SCORE_FAMILY`` (gang), ``SCORE_SEEDS`` (a file of secrets, one a line, that no
program can read in the sandbox; without it each process draws its own), ``SCORE_PRESET`` (small),
``SCORE_SANDBOX`` (bwrap; none only if you trust every program).
"""

import argparse
import json
import os
import secrets
import sys
from pathlib import Path

import hindsched as hs

FAMILY = os.environ.get("SCORE_FAMILY", "gang")
PRESET = os.environ.get("SCORE_PRESET", "small")
SANDBOX = os.environ.get("SCORE_SANDBOX", "bwrap")
SEEDS = os.environ.get("SCORE_SEEDS") or [secrets.token_hex(16) for _ in range(8)]


def evaluate(program_path):
    """Score a program: of hidden instances the score alone, of public ones everything."""
    try:
        found = hs.score(program_path, family=FAMILY, seeds=SEEDS, preset=PRESET, sandbox=SANDBOX)
    except hs.InputError as error:
        if error.where != "candidate":  # not the program's fault
            raise
        metrics, artifacts = {"combined_score": 0.0}, {"error": str(error)}
    else:
        public = found.data["public"]
        metrics = {
            "combined_score": found.combined_score,
            "public_score": found.data["public_score"],
            "public_failed": float(sum(row["status"] != "ok" for row in public)),
        }
        artifacts = {"feedback": found.feedback}
    try:
        from openevolve.evaluation_result import EvaluationResult
    except ImportError:
        return {**metrics, **artifacts}
    return EvaluationResult(metrics, artifacts)


def parts(found):
    """Numbers and texts of what `evaluate` returns."""
    if hasattr(found, "metrics"):
        return found.metrics, found.artifacts
    metrics = {name: value for name, value in found.items() if isinstance(value, float)}
    return metrics, {name: value for name, value in found.items() if name not in metrics}


def main():
    """Evaluate one program for a search that runs this file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", nargs="?")
    parser.add_argument("mode", nargs="?", help="train or test, of SkyDiscover: the same here")
    parser.add_argument("--program_path")
    parser.add_argument("--results_dir")
    given = parser.parse_args()
    metrics, artifacts = parts(evaluate(given.program_path or given.program))
    if given.results_dir is None:
        said = {"status": "success", **metrics, "metrics": metrics, "artifacts": artifacts}
        sys.stdout.write(json.dumps(said) + "\n")
        return
    folder = Path(given.results_dir)
    folder.mkdir(parents=True, exist_ok=True)
    public = {name: value for name, value in metrics.items() if name != "combined_score"}
    feedback = "\n".join(artifacts.values())
    told = {"combined_score": metrics["combined_score"], "public": public, "private": {}}
    (folder / "metrics.json").write_text(json.dumps({**told, "text_feedback": feedback}))
    works = "error" not in artifacts and not metrics["public_failed"]
    correct = {"correct": works, "error": None if works else feedback}
    (folder / "correct.json").write_text(json.dumps(correct))


if __name__ == "__main__":
    main()
