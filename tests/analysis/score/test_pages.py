"""A page of a score: texts are texts, and rows that lack something keep the columns of others."""

from hindsched.analysis.score import referee


def test_a_page_of_tables():
    rows = [
        {"instance": "i01", "reason": "<b>no\u202e", "score": 0.0, "ladder": {"fifo": 1}},
        {"instance": "i02", "reason": None, "score": 0.123456789, "seconds_longest": 2.5},
    ]
    facts = ("combined_score", "interval", "sandbox", "family", "suite", "preset", "made")
    data = dict.fromkeys(facts, "x") | {"candidate": "<i>", "public": [], "ladder": []}
    text = referee.page_of(data | {"instances": rows})
    assert "The score of &lt;i&gt;</h1>" in text
    assert "&lt;b&gt;no\\u202e" in text
    names = "<th>instance</th><th>reason</th><th>score</th><th>seconds longest</th>"
    assert names in text
    assert "<td>i02</td><td>-</td><td>0.123457</td><td>2.5</td>" in text
    assert "default-src 'none'" in text
    assert "fifo" not in text
