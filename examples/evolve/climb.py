"""A hill climber over the constants of a program, where a search would ask a language model.

``python climb.py initial_gang.py 30 > better.py``: one constant a step is changed, and kept if the
score is not lower. Constants are the lines ``NAME = number``.
"""

import random
import re
import sys
import tempfile
from pathlib import Path

CONSTANT = re.compile(r"^([A-Z_]+) = (-?[\d.]+)$", re.MULTILINE)


def climb(text, score, steps, seed=0):
    """The best of so many programs, and its score."""
    draw, best = random.Random(seed), score(text)
    for _ in range(steps):
        found = draw.choice(list(CONSTANT.finditer(text)))
        value = round(float(found[2]) + draw.choice([-1, -0.3, 0.3, 1]), 3)
        tried = f"{text[: found.start(2)]}{value}{text[found.end(2) :]}"
        reached = score(tried)
        if reached >= best:
            text, best = tried, reached
    return text, best


def main():
    """Climb from a file and print the program that was reached."""
    from evaluator import evaluate, parts

    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:

        def score(text):
            Path(file.name).write_text(text)
            return parts(evaluate(file.name))[0]["combined_score"]

        text, best = climb(Path(sys.argv[1]).read_text(), score, int(sys.argv[2]))
    sys.stdout.write(text)
    sys.stderr.write(f"score {best}\n")


if __name__ == "__main__":
    main()
