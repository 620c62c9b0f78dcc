"""Certificates at the command line: written by solve and simulate, checked, explained."""

import json

from hindsched.cli.app import run

NAME = "oasis-t10-i10-h5-s1"


def ask(capsys, *arguments):
    code = run([*arguments, "--json"])
    captured = capsys.readouterr()
    return code, json.loads(captured.out) if code == 0 else captured.err


def test_an_algorithms_own_prices_are_its_certificate(capsys, tmp_path):
    solution, prices = str(tmp_path / "s.json"), str(tmp_path / "c.json")
    run_oasis = ("simulate", NAME, "--algorithm", "oasis")
    code, ran = ask(capsys, *run_oasis, "-o", solution, "--certificate", prices)
    assert code == 0
    assert ran["bound"] >= 250.338 >= ran["objective"]
    code, checked = ask(capsys, "verify", NAME, solution, "--prices", prices)
    assert code == 0
    assert checked["bound"] == ran["bound"]
    code, said = ask(capsys, "simulate", NAME, "--algorithm", "fifo", "--certificate", prices)
    assert code == 2
    assert said.strip() == "error: certificate: (absent): the algorithm must post prices"


def test_a_tree_proves_an_optimum_and_says_what_is_explained(capsys, tmp_path):
    name = "oasis-t10-i10-h25-s0"
    solution, tree, online = (str(tmp_path / f"{file}.json") for file in ("s", "c", "o"))
    files = ("-o", solution, "--certificate", tree)
    code, solved = ask(capsys, "solve", name, "--method", "tree", "--time-limit", "120", *files)
    assert (code, solved["status"], solved["method"]) == (0, "optimal", "tree")
    assert solved["certified"]
    code, checked = ask(capsys, "verify", name, solution, "--prices", tree)
    assert code == 0
    assert (checked["certificate"], checked["proves_optimal"]) == ("tree", True)
    assert checked["leaves"] == len(json.loads((tmp_path / "c.json").read_text())["prices"])
    assert run(["verify", name, solution, "--prices", tree]) == 0
    said = capsys.readouterr().out
    assert "this solution is optimal" in said
    assert "exact kernel: proves optimal" in said
    assert ask(capsys, "verify", name, solution, "--fast")[1]["exact"] is None
    ask(capsys, "simulate", name, "--algorithm", "oasis", "-o", online)
    code, checked = ask(capsys, "verify", name, online, "--prices", tree)
    assert (code, checked["proves_optimal"]) == (0, False)
    prices = str(tmp_path / "prices.json")
    ask(capsys, "solve", name, "--method", "bound", "--work-limit", "50", "--certificate", prices)
    both = ("--prices", prices, "--prices", tree)
    code, of_both = ask(capsys, "verify", name, solution, *both)
    assert (code, of_both["certificate"], of_both["bound"]) == (0, "tree", solved["bound"])
    assert sum(line.startswith("bound ") for line in of_both["exact"]["lines"]) == 2
    data = json.loads((tmp_path / "prices.json").read_text())
    (tmp_path / "prices.json").write_text(json.dumps({**data, "bound": 0.9 * data["bound"]}))
    code, said = ask(capsys, "verify", name, solution, *both)
    assert (code, said.count("\n")) == (2, 1)
    assert "the prices prove" in said
    code, told = ask(capsys, "explain", name, online, "--prices", tree)
    assert code == 0
    assert f"a tree of {checked['leaves']} leaves" in told["note"]
    assert told["bound"] > checked["bound"]
