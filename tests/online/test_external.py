"""Schedulers in other processes: they run, they fail in one line, and nothing of them stays."""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import hindsched as hs
from hindsched.errors import InputError, Refused, SolveFailed
from hindsched.online.external import Conversation

EXAMPLES = Path(__file__).parents[2] / "examples" / "schedulers"
HELLO = """
import json, sys, time
def say(**words): print(json.dumps(words), flush=True)
input(); say(type="hello", protocol=1)
"""
READY = HELLO + "input(); say(type='ready')\n"
IDLE = (
    READY
    + """
for line in sys.stdin:
    say(type="decision")
"""
)


@pytest.fixture(scope="module")
def instance():
    return hs.generate("oasis", preset="small", seed=1)


def scheduler(tmp_path, text):
    file = tmp_path / "scheduler.py"
    file.write_text(text)
    return [sys.executable, str(file)]


def test_the_python_example_serves_jobs(instance):
    run = hs.simulate(instance, hs.External([sys.executable, str(EXAMPLES / "one_at_a_time.py")]))
    assert run.violations == []
    assert run.objective > 0
    assert run.algorithm.startswith("exec:")


@pytest.mark.skipif(not shutil.which("awk"), reason="awk is not installed")
def test_the_shell_example_is_all_cloud():
    instance = hs.generate("edgecloud", preset="small", seed=1)
    run = hs.simulate(instance, f"exec:sh {EXAMPLES / 'all_to_cloud.sh'}")
    other = hs.simulate(instance, "all-cloud")
    assert run.violations == []
    assert run.solution.assignments() == other.solution.assignments()


def test_an_idle_scheduler_earns_nothing_twice(instance, tmp_path):
    mine = hs.External(scheduler(tmp_path, IDLE))
    assert hs.simulate(instance, mine).objective == 0
    assert hs.simulate(instance, mine).objective == 0


FAILURES = {
    "hangs at hello": ("import time; time.sleep(60)", "hello: gave no answer within 0.5 s"),
    "hangs later": (READY + "input(); time.sleep(60)", "slot 1: gave no answer within 0.5 s"),
    "nonsense": (READY + "input(); print('what?', flush=True)", "slot 1: answered 'what\\?'"),
    "another type": (READY + "input(); say(type='ready')", "answered with 'ready', not 'decision'"),
    "a list": (READY + "input(); print('[1]', flush=True)", "not 'decision'"),
    "another slot": (READY + "input(); say(type='decision', slot=5)", "answered for slot 5"),
    "a wrong key": (READY + "input(); say(type='decision', rows={})", "unknown key 'rows'"),
    "another protocol": ('input(); print(\'{"type":"hello","protocol":9}\')', "speaks protocol 9"),
    "dies": (READY + "sys.exit('out of ideas')", "exit code 1.*it wrote: out of ideas"),
    "dies at once": ("raise SystemExit(3)", "exit code 3"),
    "a key twice": (
        READY + """input(); print('{"type":"decision","slot":7,"slot":1}', flush=True)""",
        "the key 'slot' stands twice",
    ),
    "closes its output": (
        READY + "import os; input(); os.close(1); time.sleep(60)",
        "closed its output before it answered",
    ),
    "leaves a child that holds its output": (
        "import os, time\nif os.fork() == 0: time.sleep(60)\nelse: os._exit(3)",
        "hello: ended with exit code 3 before it answered",
    ),
    "deep nesting": (READY + "input(); print('[' * 100000, flush=True)", "slot 1: answered"),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failure_is_one_line(instance, tmp_path, failure):
    text, message = FAILURES[failure]
    mine = hs.External(scheduler(tmp_path, text), timeout=0.5 if "hangs" in failure else 20)
    with pytest.raises(SolveFailed, match=message) as error:
        hs.simulate(instance, mine)
    assert "\n" not in str(error.value)


def test_wrong_decisions_are_refused_as_anyone_elses(instance, tmp_path):
    unknown = READY + "input(); say(type='decision', rejected=['nobody'])"
    with pytest.raises(Refused, match="has not arrived"):
        hs.simulate(instance, hs.External(scheduler(tmp_path, unknown)))
    no_mapping = READY + "input(); say(type='decision', assignments=[1])"
    with pytest.raises(Refused, match="must map job names to rows"):
        hs.simulate(instance, hs.External(scheduler(tmp_path, no_mapping)))
    no_rows = READY + "job = json.loads(input())['arrivals'][0]['name']\nsay(type='decision', "
    with pytest.raises(Refused, match="rows must be a list of objects"):
        hs.simulate(instance, hs.External(scheduler(tmp_path, no_rows + "assignments={job: 5})")))


def test_a_name_that_cannot_be_printed_is_one_run_s_failure(instance, tmp_path):
    text = READY + """input(); print('{"type":"decision","rejected":["\\\\ud800"]}', flush=True)"""
    mine = hs.External(scheduler(tmp_path, text))
    comparison = hs.compare(instance, [mine], method="bound", time_limit=5, progress=False)
    error = comparison.records[-1]["error"]
    assert "has not arrived" in error
    error.encode()


def is_gone(pid):
    for _ in range(200):
        state = subprocess.run(["ps", "-o", "stat=", "-p", pid], capture_output=True, text=True)
        if not state.stdout.strip() or state.stdout.startswith("Z"):
            return True
        time.sleep(0.05)
    return False


def hanging(pids):
    return f"""
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
open({str(pids)!r}, "w").write(f"{{os.getpid()}} {{child.pid}}")
time.sleep(60)
"""


def test_nothing_of_a_hanging_scheduler_stays(instance, tmp_path):
    pids = tmp_path / "pids"
    with pytest.raises(SolveFailed, match="gave no answer"):
        hs.simulate(instance, hs.External(scheduler(tmp_path, hanging(pids)), timeout=2))
    assert all(map(is_gone, pids.read_text().split()))


def test_events_tell_when_rows_have_ended(tmp_path):
    instance = hs.generate("edgecloud", preset="small", seed=1)
    log = tmp_path / "log"
    program = (EXAMPLES / "all_to_cloud.sh").read_text()
    spy = tmp_path / "spy.sh"
    spy.write_text(program.replace("    case $", f'    echo "$message" >> {log}\n    case $'))
    run = hs.simulate(instance, f"exec:sh {spy}")
    text = log.read_text()
    for job in instance.jobs[:3]:
        after = run.solution.completion(job.name) + 1
        line = next(row for row in text.splitlines() if f'"slot":{after},' in row)
        assert f'"job":"{job.name}"' in line.split('"events"')[1]


@pytest.mark.parametrize("command", ["", []])
def test_an_empty_command_is_bad_input(command):
    with pytest.raises(InputError, match="must be a program"):
        hs.External(command)


@pytest.mark.skipif(sys.platform != "linux", reason="pipes are made small on Linux alone")
def test_who_stops_reading_a_small_pipe_is_ended(tmp_path):
    text = (
        "import fcntl, time; fcntl.fcntl(0, 1031, 4096); input()\n"
        'print(\'{"type":"hello"}\', flush=True); time.sleep(90)\n'
    )
    talk = Conversation(scheduler(tmp_path, text), "scheduler", timeout=20, longest=10_000)
    talk.ask({}, "hello", "hello")
    talk.timeout = 1
    began = time.monotonic()
    with pytest.raises(SolveFailed, match="did not read the message within 1 s"):
        talk.ask({"long": "x" * 100_000}, "slot 1", "decision")
    assert time.monotonic() - began < 20


def test_a_program_that_is_not_there(instance):
    with pytest.raises(SolveFailed, match="cannot be started"):
        hs.simulate(instance, "exec:/no/such/program")


def test_files_that_are_no_python(instance, tmp_path):
    with pytest.raises(InputError, match="must run as Python: FileNotFoundError"):
        hs.simulate(instance, f"{tmp_path}/absent.py:Mine")
    broken = tmp_path / "broken.py"
    broken.write_text("x = 1\nboom(\n")
    with pytest.raises(InputError, match=r"SyntaxError: .*line 2"):
        hs.simulate(instance, f"{broken}:Mine")
    raises = tmp_path / "raises.py"
    raises.write_text("x = 1\nx.y\n")
    with pytest.raises(InputError, match=r"AttributeError: .*\(line 2\)"):
        hs.simulate(instance, f"{raises}:Mine")
