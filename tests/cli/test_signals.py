"""Ctrl-C and SIGTERM at any moment: one line that says what became of what was there."""

import gc
import signal
import subprocess
import sys

import pytest

import hindsched as hs
from hindsched import cli
from hindsched.cli.app import run
from hindsched.cli.limits import limited
from hindsched.errors import Interrupted
from hindsched.instances.io import write
from hindsched.solvers.door.interrupt import Terminated

pytestmark = pytest.mark.nightly

LATE = """
import hindsched.cli, os, sys
class Slow:  # stands for modules that take long to load
    def find_spec(self, name, *_):
        if name == "hindsched.cli.app":
            print("loading", flush=True)
            __import__("time").sleep(60)
sys.meta_path.insert(0, Slow())
hindsched.cli.main()
"""


@pytest.mark.parametrize(
    ("number", "code", "word"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_while_modules_are_loaded(number, code, word):
    process = subprocess.Popen(
        [sys.executable, "-c", LATE], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline() == "loading\n"
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    line = f"error: {word} before anything began; what was there is as it was\n"
    assert (process.returncode, errors) == (code, line)


AGAIN = """
import atexit, hindsched.cli, os, signal, sys
from hindsched.cli import app
moment = sys.argv.pop()
def again(*_, told=app.errors.print, **more):
    if moment == "leaving":
        atexit.register(os.kill, os.getpid(), signal.SIGINT)
        told(*_, **more)
    elif moment == "telling":
        os.kill(os.getpid(), signal.SIGINT)
        told(*_, **more)
    else:
        raise KeyboardInterrupt
app.errors.print = again
hindsched.cli.main()
"""


@pytest.mark.parametrize(
    ("moment", "code", "line"),
    [("telling", 2, "error: missing.json: (absent): must be a readable file\n"),
     ("leaving", 2, "error: missing.json: (absent): must be a readable file\n"),
     ("unwinding", 130, "error: interrupted\n")],
)  # fmt: skip
def test_once_more_while_the_reason_is_told(moment, code, line):
    """Somebody who presses Ctrl-C twice reads one line, and no traceback."""
    command = [sys.executable, "-c", AGAIN, "describe", "missing.json"]
    done = subprocess.run([*command, moment], text=True, capture_output=True, timeout=120)
    assert (done.returncode, done.stderr) == (code, line)


@pytest.mark.parametrize(
    ("reason", "code", "word"),
    [(KeyboardInterrupt, 130, "interrupted"), (Terminated, 143, "terminated")],
)
@pytest.mark.parametrize("moment", ["damages", "missing", "write_tables"])
def test_before_and_after_the_tasks(tmp_path, capsys, monkeypatch, moment, reason, code, word):
    """While a folder is checked, and while tables are written, as well."""
    from hindsched.analysis.store import ResultStore

    write(hs.generate("oasis", preset="small", seed=1), tmp_path / "x.json")
    folder = str(tmp_path / "out")
    given = [str(tmp_path / "x.json"), "--algorithm", "fifo", "--seeds", "1", "--method", "bound"]
    assert run(["bench", *given, "--workers", "0", "--out", folder]) == 0
    capsys.readouterr()
    asked = iter([reason])
    real = getattr(ResultStore, moment)

    def disturbed(self, *arguments, **more):
        for error in asked:
            raise error
        return real(self, *arguments, **more)

    monkeypatch.setattr(ResultStore, moment, disturbed)
    assert run(["bench", "--resume", "--workers", "0", "--out", folder]) == code
    lines = capsys.readouterr().err.splitlines()
    assert lines[-2:] == [
        f"{word}: 2 of 2 tasks are kept; go on with",
        f"  hindsched bench --resume --out {folder}",
    ]


def test_nothing_is_collected_once_the_answer_is_there(monkeypatch):
    """Half a second of every command, and more where a large program was stopped half built."""
    monkeypatch.setattr("hindsched.cli.app.run", lambda **_: 0)
    monkeypatch.setattr(cli, "leave_at_once", lambda when: None)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with pytest.raises(SystemExit):
            cli.main()
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
        for number, handler in handlers.items():
            signal.signal(number, handler)


@pytest.mark.parametrize(
    ("reason", "code"), [(KeyboardInterrupt, 130), (Terminated, 143), (OSError, None)]
)
def test_a_signal_while_a_compiled_module_is_loaded(reason, code):
    def command():
        try:
            raise reason
        except BaseException as stopped:  # as pybind11 does
            raise ImportError("initialization failed") from stopped

    with pytest.raises(ImportError if code is None else Interrupted) as raised:
        limited(command)(time_limit=None, memory_limit=None)
    assert code is None or raised.value.exit_code == code
