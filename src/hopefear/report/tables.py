"""Tables: numbers of a column share their decimals and line up; the best ones stand out."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Mapping, Sequence
from typing import Literal

from hopefear.report.markup import escape, inline

Cell = object
Best = Literal["max", "min"]
ABSENT = "–"
_NUMERIC = re.compile(r"[-−+<>≤≥~≈]?\s*\d[\d,.]*(?:[eE][-+]?\d+)?\s*(?:%|±.*|×|s|ms|[kMG]B?)?")
_ALIGN = {"l": "", "r": ' class="r"', "c": ' class="c"'}


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    caption: str = "",
    align: str | None = None,
    highlight: Mapping[str, Best] | None = None,
    notes: str | Sequence[str] | None = None,
) -> str:
    """HTML of a table; see :meth:`Page.table`."""
    for i, row in enumerate(rows):
        if len(row) != len(columns):
            raise ValueError(
                f"row {i} has {len(row)} cells but the table has {len(columns)} "
                "columns; give one cell per column (None leaves it empty)"
            )
    if align is not None and (len(align) != len(columns) or set(align) - set(_ALIGN)):
        raise ValueError(
            f"align {align!r} does not fit {len(columns)} columns; "
            "give one letter of 'l', 'r', 'c' per column"
        )
    cells = [[row[j] for row in rows] for j in range(len(columns))]
    sides = align or "".join("r" if _is_numeric(column) else "l" for column in cells)
    texts = [_format(column) for column in cells]
    best = _best(columns, cells, highlight or {})
    head = "".join(
        f'<th scope="col"{_ALIGN[a]}>{escape(c)}</th>' for c, a in zip(columns, sides, strict=True)
    )
    body = []
    for i in range(len(rows)):
        line = []
        for j, side in enumerate(sides):
            text = escape(texts[j][i])
            if j == 0 and side == "l":
                short = ' class="n"' if len(texts[j][i]) <= 40 else ""
                line.append(f'<th scope="row"{short}>{text}</th>')
            elif i in best.get(j, ()):
                line.append(
                    f'<td class="{"" if side == "l" else side} best"><strong>{text}</strong></td>'
                )
            else:
                line.append(f"<td{_ALIGN[side]}>{text}</td>")
        body.append(f"<tr>{''.join(line)}</tr>")
    title = f"<caption>{inline(caption)}</caption>" if caption else ""
    name = escape(caption or "table")
    lines = [notes] if isinstance(notes, str) else list(notes or ())
    under = "".join(f"<p>{inline(line)}</p>" for line in lines)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{name}">'
        f"<table>{title}<thead><tr>{head}</tr></thead>\n<tbody>"
        + "\n".join(body)
        + "</tbody></table></div>"
        + (f'<div class="notes">{under}</div>' if under else "")
    )


def value_text(value: object) -> str:
    """One value as text: short for numbers, ``key=value`` for mappings, a dash for nothing.

    Examples
    --------
    >>> value_text(0.1), value_text(None), value_text({"a": 1, "b": True})
    ('0.1', '–', 'a=1, b=yes')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, numbers.Integral):
        return f"{int(value):,}"
    if isinstance(value, numbers.Real):
        return f"{float(value):.6g}"
    if isinstance(value, Mapping):
        shown = ", ".join(f"{k}={value_text(v)}" for k, v in value.items() if k != "name")
        return f"{value['name']}({shown})" if "name" in value else shown or ABSENT
    if isinstance(value, (list, tuple)):
        return ", ".join(value_text(v) for v in value) or ABSENT
    return str(value)


def _format(column: Sequence[Cell]) -> list[str]:
    fractions = [_fraction(value) for value in column]
    decimals = _decimals([f for f in fractions if f is not None and math.isfinite(f)])
    return [
        value_text(value) if fraction is None else _number(fraction, decimals)
        for value, fraction in zip(column, fractions, strict=True)
    ]


def _decimals(values: Sequence[float]) -> int | None:
    """Decimals for a whole column, or None where its values are too far apart for one choice."""
    top = max((abs(v) for v in values), default=0.0)
    most = 4 if top < 1 else 2 if top < 1e3 else 1 if top < 1e4 else 0
    if top >= 1e12 or any(0 < abs(v) < 0.5 * 10**-most for v in values):
        return None
    enough = (d for d in range(most) if all(round(v, d) == round(v, most) for v in values))
    return max(next(enough, most), min(most, 1))


def _number(value: float, decimals: int | None) -> str:
    if math.isnan(value):
        return ABSENT
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:.3g}" if decimals is None else f"{value:,.{decimals}f}"
    return text.replace("-", "−", 1) if text.startswith("-") else text


def _best(
    columns: Sequence[str], cells: Sequence[Sequence[Cell]], highlight: Mapping[str, Best]
) -> dict[int, set[int]]:
    found = {}
    for name, kind in highlight.items():
        if name not in columns:
            raise ValueError(
                f"highlight names column {name!r}, which the table lacks; "
                f"it has {', '.join(columns)}"
            )
        if kind not in ("max", "min"):
            raise ValueError(f"highlight of {name!r} is {kind!r}; use 'max' or 'min'")
        j = list(columns).index(name)
        values = {i: v for i, v in enumerate(map(_as_number, cells[j])) if v is not None}
        # Among fewer than two there is nothing to be better than.
        if len(values) > 1:
            target = max(values.values()) if kind == "max" else min(values.values())
            found[j] = {i for i, v in values.items() if v == target}
    return found


def _as_number(value: Cell) -> float | None:
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        return None if math.isnan(float(value)) else float(value)
    match = (
        re.match(r"\s*[-−+]?\d[\d,]*\.?\d*(?:[eE][-+]?\d+)?", value)
        if isinstance(value, str)
        else None
    )
    return float(match[0].replace(",", "").replace("−", "-")) if match else None


def _fraction(value: Cell) -> float | None:
    real = isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral)
    return float(value) if real else None  # type: ignore[arg-type]


def _is_numeric(column: Sequence[Cell]) -> bool:
    seen = False
    for value in column:
        if value is None or (isinstance(value, str) and value.strip() in ("", ABSENT, "-", "—")):
            continue
        number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if not number and not (isinstance(value, str) and _NUMERIC.fullmatch(value.strip())):
            return False
        seen = True
    return seen
