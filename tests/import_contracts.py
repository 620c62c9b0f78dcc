"""The contract of import-linter that keeps families apart, for whatever words the list has."""

from __future__ import annotations

from importlinter import Contract, ContractCheck, output

from hindsched.instances.base import FAMILIES


class FamiliesStandAlone(Contract):
    """A family imports no other family, and nothing that is shared imports a family.

    A family is a package of its name in each folder (``hindsched.models.oasis``); all else is
    shared. Both rules together make any two families independent, through others' imports too.
    The package itself imports none at run time: it offers each one's builders to a type checker.
    """

    def check(self, graph, verbose):
        wrong = [
            (importer, imported, detail["line_number"])
            for importer in sorted(graph.modules - {"hindsched"})
            for imported in sorted(graph.find_modules_directly_imported_by(importer))
            if (family := family_of(imported)) and family_of(importer) != family
            for detail in graph.get_import_details(importer=importer, imported=imported)
        ]
        return ContractCheck(kept=not wrong, metadata={"wrong": wrong})

    def render_broken_contract(self, check):
        for importer, imported, line in check.metadata["wrong"]:
            output.print_error(f"{importer} imports {imported} (line {line})")
            output.new_line()


def family_of(module: str) -> str | None:
    """The family in whose package a module stands, or None for what is shared."""
    return next((word for word in module.split(".") if word in FAMILIES), None)
