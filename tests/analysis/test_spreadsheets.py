"""Text in tables is text in a spreadsheet too."""

import pandas as pd
import pytest

from hindsched.analysis.spreadsheets import for_spreadsheets


@pytest.mark.parametrize("text", ["=1+1", "+cmd|' /C calc'!A0", "-a", "@SUM(A1)"])
def test_what_would_be_computed_is_quoted(text):
    assert for_spreadsheets(pd.DataFrame({"a": [text]}))["a"].tolist() == ["'" + text]


def test_everything_else_stays():
    table = pd.DataFrame({"a": ["x", "", None, "-1.5"], "b": [-1.0, 2.0, 3.0, 4.0]})
    pd.testing.assert_frame_equal(for_spreadsheets(table), table)


@pytest.mark.parametrize("text", ["\tx", "\r=x", "a\x07", "\x1b[31m", "\u202ex"])
def test_what_a_terminal_would_act_on_is_spelled_out(text):
    (cell,) = for_spreadsheets(pd.DataFrame({"a": [text]}))["a"]
    assert cell == text.encode("unicode_escape").decode("ascii")
