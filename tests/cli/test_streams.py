"""Output in odd places: closed or full streams, readers that leave, narrow terminals."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.nightly

COMMAND = [sys.executable, "-m", "hindsched", "list", "families"]


@pytest.mark.parametrize("flags", [[], ["--json"]])
@pytest.mark.parametrize("closed", [1, 2])
def test_a_closed_stream_is_no_error(flags, closed):
    done = subprocess.run(
        [*COMMAND, *flags],
        stdout=None if closed == 1 else subprocess.PIPE,
        stderr=None if closed == 2 else subprocess.PIPE,
        preexec_fn=lambda: os.close(closed),
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    if closed == 1:
        assert done.stderr == ""
    else:
        assert "oasis" in done.stdout


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_device_is_one_line(unbuffered):
    """What waits for it is given up: the interpreter's last flush would end with code 120."""
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            COMMAND, stdout=full, stderr=subprocess.PIPE, check=False, text=True, env=environment
        )
    assert done.returncode == 1
    assert done.stderr == "error: No space left on device\n"


def test_a_reader_that_leaves_is_no_traceback():
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "hindsched", "schema", "oasis"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


def test_an_instance_goes_through_a_pipe():
    hindsched = [sys.executable, "-m", "hindsched"]
    made = subprocess.run([*hindsched, "generate", "oasis", "-o", "-"], capture_output=True)
    assert made.returncode == 0
    assert b"sha256" in made.stderr  # the words for people do not mix with the file
    told = subprocess.run(
        [*hindsched, "describe", "-", "--json"], input=made.stdout, capture_output=True
    )
    assert told.returncode == 0, told.stderr
    assert b'"family": "oasis"' in told.stdout
