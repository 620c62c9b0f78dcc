"""Write each family's programs into the page of its problem: as printed first, then as solved.

Usage: python docs/formulations.py
"""

import re
from pathlib import Path

import hindsched as hs

PROBLEMS = Path(__file__).parent / "problems"
BEGIN, END = "<!-- made by docs/formulations.py -->", "<!-- end of formulations -->"
PROGRAMS = {
    "oasis": ({"form": "printed"}, {}),
    "batchsched": ({"form": "printed"}, {}),
    "astraea": ({"form": "printed"}, {}),
    "edgecloud": ({"form": "printed"}, {}),
    "mlbroker": ({"form": "printed"}, {}),
    "gang": ({"form": "printed"}, {}, {"formulation": "preemptive"}),
}
"""Arguments of `hs.model` for the programs shown."""
FORMULA = re.compile(r"\\\[ ?(.*?) ?\\\]", re.DOTALL)


def main() -> None:
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")


def files() -> dict[Path, str]:
    """The pages by their paths."""
    return {path: page(family) for family, path in places().items()}


def places() -> dict[str, Path]:
    return {family: PROBLEMS / f"{family}.md" for family in PROGRAMS}


def page(family: str) -> str:
    """The family's page with its programs made anew."""
    text = places()[family].read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{programs(family)}\n{END}{after}"


def programs(family: str) -> str:
    """The programs, each with its symbols."""
    instance = hs.generate(family, preset="small", seed=1)
    parts = []
    for arguments in PROGRAMS[family]:
        written = ", ".join(["instance", *(f'{key}="{value}"' for key, value in arguments.items())])
        model = hs.model(instance, **arguments)
        rules, _, _ = model.to_latex().partition("\n\n")[2].partition("symbols, and their names")
        formulas = FORMULA.sub(lambda found: f"\n```math\n{found[1]}\n```", rules).strip()
        symbols = getattr(model.program.model, "notation", {})
        parts.append(f"### `hs.model({written})`\n\n{formulas}\n{table(symbols)}")
    return "\n".join(parts)


def table(symbols: dict[str, tuple[str, str]]) -> str:
    """A program's symbols and their names in the code."""
    rows = [f"| $`{symbol}`$ | `{here}` | {what} |" for symbol, (here, what) in symbols.items()]
    return "\n".join(["", "| symbol | here | |", "|---|---|---|", *rows, ""]) if rows else ""


if __name__ == "__main__":
    main()
