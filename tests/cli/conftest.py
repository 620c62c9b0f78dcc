"""What the tests of the commands share."""

import json

import pytest

from hindsched.cli.app import run


@pytest.fixture
def answer(capsys):
    """Run a command with --json in this process and return its exit code and its object."""

    def ask(*arguments):
        code = run([*arguments, "--json"])
        captured = capsys.readouterr()
        assert len(captured.out.splitlines()) == 1, captured.out + captured.err
        return code, json.loads(captured.out)

    return ask
