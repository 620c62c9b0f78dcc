"""Scores: what they are, that they can be had again, and what is told to whom."""

import json
import time
from fractions import Fraction
from pathlib import Path

import pytest

import hindsched as hs
from hindsched.analysis.score import judge, referee
from hindsched.analysis.score.candidate import Contained, Limits, find_bwrap, read_candidate
from hindsched.cli.app import run
from hindsched.errors import InputError, SolveFailed

FIRST_FIT = str(Path(__file__).parents[3] / "examples" / "schedulers" / "first_fit.py")
SEEDS = [1, 14, 19]
SANDBOX = "bwrap" if find_bwrap()[0] else "none"
IDLE = """
import hindsched as hs
class Idle(hs.OnlineAlgorithm):
    def start(self, environment):
        print("this is no answer")
    def step(self, slot, arrivals):
        return hs.Decision(rejected=[job.name for job in arrivals])
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("denominators")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("scored") / "first-fit"


@pytest.fixture(scope="module")
def scored(folder, cache):
    return hs.score(FIRST_FIT, family="gang", seeds=SEEDS, out=folder, cache=cache, sandbox=SANDBOX)


def test_a_score_is_the_certified_share_of_the_optimum(scored, folder):
    for row in scored.instances.itertuples():
        instance = hs.read(folder / "hidden" / row.instance / "instance.json")
        optimum = hs.solve(instance).objective
        assert row.score <= optimum / row.objective < row.score + 1e-6
    assert scored.combined_score == pytest.approx(scored.instances["score"].mean(), abs=1e-9)
    assert set(scored.ladder["algorithm"]) == {
        "hindsight", "fifo", "easy", "dual-price", "reoptimise",
    }  # fmt: skip
    assert scored.ladder.iloc[0]["algorithm"] == "hindsight"


@pytest.mark.parametrize("family", hs.families())
def test_nobody_is_above_1_and_hindsight_is_near_it(family, cache):
    own = next(iter(hs.algorithms(family)))
    found = hs.score(own, family=family, seeds=[7], public_seeds=[], cache=cache)
    assert 0 < found.combined_score <= 1
    best = found.ladder.set_index("algorithm").loc["hindsight"]
    assert best["score"] > 0.9
    assert found.data["sandbox"] == "in process"


def test_the_same_again_to_the_last_digit(scored, tmp_path):
    again = hs.score(FIRST_FIT, family="gang", seeds=SEEDS, cache=tmp_path, sandbox=SANDBOX)
    for key in ("combined_score", "interval", "public_score", "ladder"):
        assert again.data[key] == scored.data[key]
    assert again.data["candidate"] == scored.data["candidate"]


OWN = {"oasis": "fifo", "mlbroker": "local", "edgecloud": "all-cloud", "gang": "easy"}
"""Algorithms that compile no kernels, for the sandbox keeps none."""


@pytest.mark.parametrize("family", OWN)
def test_a_class_is_served_as_in_process(family, tmp_path):
    (tmp_path / "mine.py").write_text(
        f"""
import hindsched as hs
from hindsched.online.{family}.algorithms import ONLINE
class Mine(hs.OnlineAlgorithm):
    def start(self, environment):
        self.inner = ONLINE.algorithms[{OWN[family]!r}]()
        self.inner.start(environment)
    def step(self, slot, arrivals):
        return self.inner.step(slot, arrivals)
    def completed(self, slot, jobs):
        self.inner.completed(slot, jobs)
    def told(self, slot, news):
        self.inner.told(slot, news)
    def wake_up(self):
        return self.inner.wake_up()
"""
    )
    instance = hs.generate(family, seed=11)
    mine = read_candidate(str(tmp_path / "mine.py"))
    served = hs.simulate(instance, Contained(mine, Limits(step=60), find_bwrap()[0]))
    assert served.objective == hs.simulate(instance, OWN[family]).objective


def test_a_run_s_limit_begins_with_the_process(tmp_path):
    (tmp_path / "slow.py").write_text(
        'import time; input(); time.sleep(5); print(\'{"type": "hello", "protocol": 1}\', '
        "flush=True); time.sleep(60)"
    )
    mine, began = read_candidate(str(tmp_path / "slow.py")), time.monotonic()
    with pytest.raises(SolveFailed, match="start: ran for more than 6 s"):
        hs.simulate(hs.generate("gang"), Contained(mine, Limits(run=6), find_bwrap()[0]))
    assert time.monotonic() - began < 10.5, "and not 5 seconds for hello, 6 for start"


def test_who_serves_nobody_scores_nothing(tmp_path, cache):
    (tmp_path / "idle.py").write_text(IDLE)
    for text in ("idle.py", "idle.py:Idle"):
        found = hs.score(
            str(tmp_path / text), family="oasis", seeds=[3], public_seeds=[], cache=cache
        )
        assert found.instances["status"].tolist() == ["ok"]
        assert found.combined_score == 0


HASHED = """
import hindsched as hs
class Hashed(hs.OnlineAlgorithm):
    def start(self, environment):
        self.free, self.waiting, self.held = environment.cluster.total_gpus, [], {}
    def completed(self, slot, jobs):
        self.free += sum(self.held.pop(name) for name in jobs)
    def step(self, slot, arrivals):
        self.waiting = sorted([*self.waiting, *arrivals], key=lambda job: hash(job.name))
        rows = {}
        for job in list(self.waiting):
            if job.gpus <= self.free:
                rows[job.name] = [{"from": slot, "gpus": job.gpus}]
                self.held[job.name] = job.gpus
                self.free -= job.gpus
                self.waiting.remove(job)
        return hs.Decision(rows)
"""


def test_hashes_are_the_same_in_all_runs(tmp_path):
    (tmp_path / "hashed.py").write_text(HASHED)
    candidate, instance = read_candidate(str(tmp_path / "hashed.py")), hs.generate("gang", jobs=20)
    runs = [
        hs.simulate(instance, Contained(candidate, Limits(), find_bwrap()[0])) for _ in range(4)
    ]
    assert len({run.objective for run in runs}) == 1


def test_feedback_tells_nothing_of_hidden_instances(scored):
    hidden = scored.data["instances"]
    text = scored.feedback
    assert "public instance i01" in text
    assert "#" in text
    for row in hidden:
        assert f"{row['objective']:.6g}," not in text.split("public", 1)[0]
    hidden_only = hs.score("fifo", family="gang", seeds=[11], public_seeds=[])
    assert len(hidden_only.feedback.splitlines()) == 1


def test_a_scored_folder_is_judged_again(scored, folder, capsys):
    assert judge.verify_score(folder) == []
    assert run(["verify", str(folder)]) == 0
    assert "follows" in capsys.readouterr().out


TAMPERED = {
    "a score": ("score.json", lambda data: data["instances"][0].update(score=0.99)),
    "the sum": ("score.json", lambda data: data.update(combined_score=0.99)),
    "the ladder": ("score.json", lambda data: data["ladder"][1].update(score=0.99)),
    "a row twice": (
        "score.json",
        lambda data: data["instances"].append(data["instances"][0]),
    ),
    "fewer rows": ("score.json", lambda data: data["instances"].pop()),
    "a seed": ("score.json", lambda data: data["seeds"].__setitem__(0, "99")),
    "a public seed": ("score.json", lambda data: data["public_seeds"].__setitem__(0, 99)),
    "a status": ("score.json", lambda data: data["instances"][0].update(status="failed")),
    "a yardstick": ("score.json", lambda data: data["public"][0]["ladder"].pop("fifo")),
    "the command": ("score.json", lambda data: data["command"].append("--fast")),
    "a schedule": (
        "hidden/i01/candidate.json",
        lambda data: data["jobs"][0]["assignments"][0].update({"from": 1, "to": 1}),
    ),
    "a bound": ("hidden/i01/certificate.json", lambda data: data.update(prices={})),
    "an instance": ("hidden/i01/instance.json", lambda data: data.update(horizon=99)),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_tampering_is_seen(scored, folder, what):
    name, change = TAMPERED[what]
    file = folder / name
    before = file.read_text()
    data = json.loads(before)
    change(data)
    file.write_text(json.dumps(data))
    try:
        assert judge.verify_score(folder)
    finally:
        file.write_text(before)


def test_another_candidate_s_file_is_seen(scored, folder):
    [file] = (folder / "candidate").iterdir()
    before = file.read_text()
    file.write_text(before + "# better")
    assert judge.verify_score(folder) == ["candidate: the files are not those that were scored"]
    file.write_text(before)


def test_by_other_rules_than_the_instance_s_is_seen(tmp_path, cache):
    hs.score("fifo", family="batchsched", seeds=[1], public_seeds=[], out=tmp_path, cache=cache)
    for file in (tmp_path / "hidden" / "i01").rglob("*.json"):
        data = json.loads(file.read_text())
        if "formulation" in data:
            file.write_text(json.dumps(data | {"formulation": "literal"}))
    assert "by the formulation literal" in " ".join(judge.verify_score(tmp_path))


def test_better_than_the_bound_is_no_candidate_s_fault(monkeypatch, cache):
    zero = judge.kernel.Interval(Fraction(10**9), Fraction(10**9))
    monkeypatch.setattr(judge.kernel, "bound", lambda *_: zero)
    with pytest.raises(SolveFailed, match="no candidate is to blame"):
        hs.score("fifo", family="gang", seeds=[11], public_seeds=[], cache=cache)


def test_words_of_a_file_are_long_and_told_to_nobody(tmp_path):
    (tmp_path / "seeds").write_text("long-enough-for-everybody\nguessed")
    with pytest.raises(InputError, match="16 characters") as told:
        hs.score("fifo", family="gang", seeds=tmp_path / "seeds")
    assert "everybody" not in str(told.value)


def test_the_command(tmp_path, capsys):
    (tmp_path / "seeds").write_text("some-secret-of-nobody-else\n")
    arguments = ["score", FIRST_FIT, "--family", "gang", "--seeds-file", str(tmp_path / "seeds")]
    arguments += ["--sandbox", SANDBOX]
    assert run([*arguments, "--json"]) == 0
    assert 0 < json.loads(capsys.readouterr().out)["combined_score"] <= 1
    assert run([*arguments, "-o", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr()
    assert "Hidden instances" in printed.out
    assert "first_fit.py: score 1.0" in printed.out
    assert f"first_fit.py: {'bwrap' if SANDBOX == 'bwrap' else 'unsandboxed'}" in printed.err
    assert (tmp_path / "out" / "feedback.txt").read_text().startswith("score ")


def test_seeds_are_drawn_where_none_are_given(monkeypatch, cache):
    monkeypatch.setattr(referee, "DRAWN", 1)
    one, two = (hs.score("fifo", family="gang", public_seeds=[], cache=cache) for _ in range(2))
    assert one.data["seeds"] != two.data["seeds"]


def test_a_suite_in_place_of_seeds(cache):
    found = hs.score("fifo", suite="gang/small", cache=cache)
    assert found.data["seeds"] == []
    assert len(found.instances) == len(hs.suite("gang", "small"))


def test_without_a_sandbox_the_result_says_so(cache):
    found = hs.score(FIRST_FIT, family="gang", seeds=[11], sandbox="none", cache=cache)
    assert found.data["sandbox"] == "unsandboxed"
    assert "unsandboxed" in found.feedback


def test_without_bubblewrap_no_candidate_runs_unless_that_is_asked_for(monkeypatch, tmp_path):
    monkeypatch.setattr(referee, "find_bwrap", lambda: (None, "bubblewrap is not installed"))
    (tmp_path / "mine.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    rule = "must work here: bubblewrap is not installed; apt install bubblewrap"
    with pytest.raises(InputError, match=rule):
        hs.score(str(tmp_path / "mine.py"), family="gang", seeds=[11])
    assert not (tmp_path / "ran").exists()


def test_a_folder_that_is_not_empty_is_refused_before_anything_runs(monkeypatch, tmp_path):
    monkeypatch.setattr(referee, "_player", None)
    (tmp_path / "kept").touch()
    with pytest.raises(InputError, match="must be a new or an empty folder"):
        hs.score(FIRST_FIT, family="gang", out=tmp_path)


def test_it_is_told_which_class_runs(tmp_path):
    (tmp_path / "mine.py").write_text(f"{IDLE}\nclass Other: pass")
    assert read_candidate(str(tmp_path / "mine.py")).name == "mine.py:Idle"
    assert read_candidate(f"{tmp_path}/mine.py --fast").name == "mine.py --fast"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"family": None}, "family"),
        ({"suite": "gang/small"}, "family"),
        ({"seeds": []}, "seeds"),
        ({"seeds": [7, 7]}, "different"),
        ({"seeds": "/no/such/file"}, "seeds-file"),
        ({"step_limit": 0}, "step limit: 0: must be above 0"),
        ({"step_limit": float("nan")}, "step limit: nan: must be above 0"),
        ({"run_limit": float("inf")}, "run limit: inf: must be above 0"),
        ({"memory": 1 << 70}, "memory"),
        ({"out": "/proc/x"}, "out: /proc/x: must be a folder"),
        ({"sandbox": "jail"}, "must be bwrap or none"),
        ({"family": "gangs"}, "family"),
    ],
)
def test_what_cannot_be_scored_is_one_line(options, message):
    with pytest.raises(InputError, match=message):
        hs.score(FIRST_FIT, **{"family": "gang", "seeds": [11], **options})


def test_a_script_may_have_arguments(tmp_path):
    (tmp_path / "mine.py").write_text("import sys; sys.exit(f'has {sys.argv[1:]}')")
    found = hs.score(f"{tmp_path}/mine.py --fast", family="gang", seeds=[11], public_seeds=[],
                     sandbox=SANDBOX)  # fmt: skip
    assert found.data["instances"][0]["reason"].endswith("has ['--fast']")


@pytest.mark.parametrize(
    "text", ["nothing.py", "no-such-program", "/no/such/program", "/tmp", "it's", "", "two.py"]
)
def test_what_is_no_candidate(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    Path("two.py").write_text(IDLE + IDLE.replace("Idle", "Busy"))
    with pytest.raises(InputError, match="candidate"):
        read_candidate(text)
