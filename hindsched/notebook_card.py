"""What a notebook shows of an object: a title, its facts and a short table, as HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

ROWS_SHOWN = 10


def card(
    title: str,
    facts: Mapping[str, object] | None = None,
    rows: Sequence[Mapping[str, object]] = (),
    *,
    total: int | None = None,
    most: int = ROWS_SHOWN,
    note: str = "",
) -> str:
    """A title, facts by name (None is left out), and the first `most` of some rows of equal keys.

    `total` says how many rows there are, if `rows` are only the first.

    >>> card("a <b>", {"gap": 0.25, "bound": None})
    '<div><strong>a &lt;b&gt;</strong><table><tr><th>gap</th><td>0.25</td></tr></table></div>'
    """
    parts = [f"<strong>{escape(title)}</strong>", f"<br>{escape(note)}" if note else ""]
    known = [(name, value) for name, value in (facts or {}).items() if value is not None]
    if known:
        lines = (
            f"<tr><th>{_cell_html(name)}</th><td>{_cell_html(value)}</td></tr>"
            for name, value in known
        )
        parts.append(f"<table>{''.join(lines)}</table>")
    if rows:
        head = "".join(f"<th>{_cell_html(column)}</th>" for column in rows[0])
        cells = [[f"<td>{_cell_html(row.get(c))}</td>" for c in rows[0]] for row in rows[:most]]
        body = "".join(f"<tr>{''.join(row)}</tr>" for row in cells)
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
        count = len(rows) if total is None else total
        if count > most:
            parts.append(f"<em>and {count - most} more</em>")
    return f"<div>{''.join(parts)}</div>"


def _cell_html(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return "–" if value is None else escape(str(value))
