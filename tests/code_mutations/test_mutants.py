"""The changes that the engine of code mutations makes."""

from __future__ import annotations

from tests.code_mutations.mutants import mutant, sites

SOURCE = '''
def f(x: int = 1, y=-2):
    """Text 3."""
    total = x + y
    total += 4
    if x < 5 and y:
        g(min(x, y), f"{x} 6")
    return total
'''


def test_every_kind_of_change_is_found_once():
    found = sorted(word for _, _, word in sites(SOURCE))
    assert found == sorted([
        "1 to 2", "2 to 3", "minus to plus", "Add to Sub", "Add to Sub", "4 to 5",
        "assignment left out", "condition negated", "And to Or", "Lt to LtE", "5 to 6",
        "call left out", "min to max",
    ])  # fmt: skip


def test_every_mutant_is_another_program():
    texts = {mutant(SOURCE, position, word) for position, _, word in sites(SOURCE)}
    assert len(texts) == len(sites(SOURCE))
    for text in texts:
        compile(text, "mutant", "exec")
    assert "x - y" in mutant(
        SOURCE, *next((p, w) for p, _, w in sites(SOURCE) if w == "Add to Sub")
    )
