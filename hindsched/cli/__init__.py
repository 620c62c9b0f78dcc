"""The command line: thin commands over the library, one file per group."""

from __future__ import annotations


def main() -> None:
    """Entry point of the ``hindsched`` command."""
    from hindsched.cli.app import run

    raise SystemExit(run())
