"""Every attack scores 0 for a reason that says what stopped it; without its guard it would work."""

import os
import re
import socket
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

import hindsched as hs
from hindsched.analysis.score import candidate as guards
from hindsched.analysis.score import judge

from .cheats import FIRST, GREED, LIES, PRIES, READY, SLURP

BWRAP, WHY = guards.find_bwrap()
sandboxed = pytest.mark.skipif(BWRAP is None, reason=WHY)
PACKAGE = Path(hs.__file__).parent


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("denominators")


@pytest.fixture
def attack(tmp_path, cache):
    """Score a program on one instance; the row of its only run."""

    def run(text, **options):
        file = tmp_path / "cheat.py"
        file.write_text("import json, os, sys, time\n" + text)
        options = {"seeds": [11], "step_limit": 2, "run_limit": 4} | options
        found = hs.score(str(file), family="gang", public_seeds=[], cache=cache, **options)
        return found.data["instances"][-1]

    return run


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_scores_nothing(attack, lie):
    text, reason = LIES[lie]
    found = attack(text, sandbox="none" if BWRAP is None else "bwrap")
    assert found["score"] == 0
    assert found["status"] in ("failed", "refused")
    assert re.search(reason, found["reason"]), found["reason"]


@pytest.fixture
def world(tmp_path, monkeypatch):
    """What an attacker is after: it is told where everything is, and still does not get it."""
    word = f"secret{uuid.uuid4().hex}"
    monkeypatch.setenv("SECRET", word)
    (tmp_path / "scored").mkdir()
    (tmp_path / "scored" / "score.json").write_text("{}")
    (tmp_path / "seeds").write_text("1234")
    Path("/tmp", word).write_text("was here")
    victim = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield {
            "folder": str(tmp_path / "scored"), "secret": str(tmp_path / "seeds"), "word": word,
            "package": str(PACKAGE), "victim": victim.pid, "port": server.getsockname()[1],
            "ancestors": [os.getpid(), os.getppid()],
        }  # fmt: skip
    victim.kill()
    victim.wait()
    Path("/tmp", word).unlink()
    Path("/var/tmp", word).unlink(missing_ok=True)


REFUSED_CALLS = [
    "shares memory that no limit counts", "asks whether another run has read a file",
    "makes the next run's reading slow",
]  # fmt: skip
"""These fail without a sandbox too."""


def tried(attack, text, sandbox, seeds=(11,)):
    """Whether an expression of an attacker's succeeds."""
    text = f"{SLURP}\ntry:\n    {text}\n    said = 'worked'\nexcept BaseException as error:\n" \
           "    said = f'stopped by {error!r}'\nsys.exit(said)\n"  # fmt: skip
    reason = attack(text, sandbox=sandbox, seeds=list(seeds))["reason"]
    assert "it wrote: " in reason, reason
    return reason.split("it wrote: ")[1]


@sandboxed
@pytest.mark.parametrize("pry", PRIES)
def test_nothing_outside_is_reached(attack, world, pry):
    text = PRIES[pry].format(**world)
    assert tried(attack, text, "bwrap").startswith("stopped")
    if pry not in REFUSED_CALLS:
        assert tried(attack, text, "none") == "worked", "the attack itself must be a real one"


WITHOUT = {
    "forks": ("MOST_TASKS", 4096), "fills the disk": ("MOST_DISK", 1 << 30),
    "opens files": ("MOST_FILES", 1024),
}  # fmt: skip
"""The guard of each greed, and what it is where it is none."""


@sandboxed
@pytest.mark.parametrize("greed", GREED)
def test_what_a_candidate_gets_is_limited(attack, monkeypatch, greed):
    text, most = GREED[greed]
    text += "\nsys.exit(f'got {found}')\n"
    memory = 512 << 20 if greed == "takes memory" else 4 << 30

    def got():
        found = attack(text, memory=memory, step_limit=60, run_limit=60)
        return int(found["reason"].split("it wrote: got ")[1])

    assert 0 < got() <= most
    if greed in WITHOUT:
        monkeypatch.setattr(guards, *WITHOUT[greed])
    else:
        memory = 2 << 30
    assert got() > most


@sandboxed
def test_memory_counts_over_all_processes(attack):
    text = (
        READY
        + """
sys.stdin.readline()
for _ in range(8):
    if os.fork() == 0:
        held = bytearray(200 << 20)
        for k in range(0, len(held), 4096): held[k] = 1
        time.sleep(30)
time.sleep(30)
"""
    )
    found = attack(text, memory=512 << 20, step_limit=4)
    assert "holds more than 512 MB" in found["reason"]
    assert "ran for more than" in attack(text, memory=4 << 30, step_limit=4)["reason"]


@pytest.mark.parametrize("sandbox", ["bwrap", "none"])
def test_nothing_that_was_started_stays(attack, sandbox):
    if sandbox == "bwrap" and BWRAP is None:
        pytest.skip(WHY)
    word = f"left-{uuid.uuid4().hex}"
    text = (
        FIRST
        + f"""
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(50)", {word!r}])
    os._exit(0)
time.sleep(0.5)
sys.exit("left a child")
"""
    )
    assert "left a child" in attack(text, sandbox=sandbox)["reason"]
    running = subprocess.run(["ps", "ax", "-o", "args="], capture_output=True, text=True)
    assert word not in running.stdout


@sandboxed
def test_no_word_of_the_instance_s_origin_is_told(attack):
    """Neither seed nor name nor provenance, and nothing from one run to the next."""
    word, seed = "word-of-the-judge", str(judge.seed_of("word-of-the-judge"))
    text = f"""{READY}
seen = json.dumps(started) + sys.stdin.readline() + json.dumps(dict(os.environ))
seen += str(os.listdir("/tmp")) + str(sys.argv) + open("/proc/self/cmdline").read()
words = ({word!r}, {seed!r}, "gang-small", "preset")
sys.exit("saw " + "".join(str(word in seen)[0] for word in words))
"""
    assert attack(text, seeds=[word])["reason"].endswith("saw FFFF")


RECOGNISES = """
import hindsched as hs
class Reader(hs.OnlineAlgorithm):
    def start(self, environment):
        self.gpus = environment.cluster.gpus
    def step(self, slot, arrivals):
        for seed in range({most}):
            jobs = hs.generate("gang", seed=seed).jobs
            if all(job in jobs for job in arrivals):
                sys.exit(f"found {{seed}}")
        sys.exit("found none")
"""


@sandboxed
@pytest.mark.parametrize("most", [50, pytest.param(10_000, marks=pytest.mark.nightly)])
def test_nobody_finds_an_instance_by_trying_seeds(attack, monkeypatch, most):
    text, limits = RECOGNISES.format(most=most), {"step_limit": 300, "run_limit": 300}
    assert attack(text, **limits)["reason"].endswith("found none")
    monkeypatch.setattr(judge, "seed_of", int)
    assert attack(text, **limits)["reason"].endswith("found 11")


@sandboxed
@pytest.mark.parametrize("answer", ["best_known.json", "recipes.json", "known", "gang/worst"])
def test_a_class_has_the_package_without_its_answers(attack, answer):
    text = f"""
import hindsched as hs
class Reader(hs.OnlineAlgorithm):
    def start(self, environment):
        found = os.path.join(os.path.dirname(hs.__file__), "instances", {answer!r})
        read = os.listdir(found) if os.path.isdir(found) else open(found).read()
        sys.exit(f"{{os.path.dirname(hs.__file__)}} has {{read!r}}")
    def step(self, slot, arrivals):
        return hs.Decision()
"""
    reason = attack(text, run_limit=60)["reason"]
    hidden = "Permission denied: '/library/hindsched" in reason
    assert hidden or reason.endswith("/library/hindsched has []"), reason


@sandboxed
def test_the_first_process_of_the_namespace_is_out_of_reach(attack):
    text = "got = [] if os.getpid() == 1 else open('/proc/1/mem', 'r+b')\nsys.exit(f'got {got}')"
    reason = attack(text)["reason"]
    assert "got []" in reason or "Permission denied" in reason


@sandboxed
def test_a_python_below_the_temporary_folder_is_there(monkeypatch, tmp_path):
    """Else the sandbox would not start where the environment stands in ``/tmp``."""
    python = tmp_path / "environment"
    python.mkdir()
    (python / "module.py").write_text("print('imported')")
    before, kept = guards._visible(), tmp_path / "files"
    kept.mkdir()
    monkeypatch.setattr(guards, "_visible", lambda: (*before, str(python)))
    walls = guards._walls(BWRAP, kept, is_class=False)
    done = subprocess.run(
        [*walls, *guards.ISOLATED, str(python / "module.py")], capture_output=True, text=True
    )
    assert done.stdout == "imported\n", done.stderr


@sandboxed
def test_runs_do_not_know_of_each_other(attack):
    text = (
        "import glob\nseen = glob.glob('/tmp/*')\nopen('/tmp/mark', 'w')\nsys.exit(f'saw {seen}')"
    )
    reason = attack(text, seeds=[11, 12])["reason"]  # where the package is, may lie in /tmp
    assert "saw [" in reason
    assert "mark" not in reason


def test_what_is_said_of_a_candidate_is_text(attack):
    text = "sys.exit('\\x1b[2J<script>alert(1)</script>\u202e')"
    reason = attack(text)["reason"]
    assert reason.isprintable()
