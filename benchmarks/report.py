"""From what was measured to rows: medians of rounds, comparisons, bars, a table."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.bars import BARS, COMPARISONS, Comparison
from benchmarks.rows import Sample

Row = dict[str, object]


@dataclass(frozen=True)
class Measured:
    """One number of one round; `of_c` is its ratio to the C reference around it."""

    sample: Sample
    round: int
    of_c: float | None = None


def rows_of(found: Sequence[Measured]) -> list[Row]:
    """A row for each name; a comparison follows the later of its two rows."""
    by_name: dict[str, list[Measured]] = {}
    for measured in found:
        by_name.setdefault(measured.sample.name, []).append(measured)
    rows = []
    shown: set[str] = set()
    for name, rounds in by_name.items():
        rows.append(median_row(rounds))
        shown.add(name)
        rows += [
            comparison_row(comparison, by_name[comparison.row], by_name[other])
            for comparison in COMPARISONS
            if name in (comparison.row, other := comparison.other)
            and shown >= {comparison.row, other}
        ]
    return rows


def median_row(rounds: Sequence[Measured]) -> Row:
    values = [m.sample.value for m in rounds if m.sample.value is not None]
    ratios = [m.of_c for m in rounds if m.of_c is not None]
    # A round that failed must not hide behind the others: its note is the one shown.
    samples = [m.sample for m in rounds]
    last = next((s for s in samples if s.value is None), samples[-1])
    return make_row(last.name, median(values), last.unit, median(ratios), last.note)


def comparison_row(
    comparison: Comparison, rounds: Sequence[Measured], others: Sequence[Measured]
) -> Row:
    """The median of the ratios of those rounds that have both numbers."""
    by_round = {m.round: m.sample.value for m in others}
    ratios = []
    for measured in rounds:
        value, other = measured.sample.value, by_round.get(measured.round)
        if value is not None and other:
            ratios.append(value / other)
    note = f"{comparison.row} / {comparison.other}"
    if not ratios:
        note += ": one of them has no value"
    return make_row(comparison.name, median(ratios), "ratio", None, note)


def median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def make_row(
    name: str, value: float | None, unit: str, ratio: float | None, note: str
) -> Row:
    bar = BARS.get(name)
    return {
        "name": name,
        "value": None if value is None else round(value, 3),
        "unit": unit,
        "ratio_to_cref": None if ratio is None else round(ratio, 3),
        "bar": None if bar is None else str(bar),
        "met": None if bar is None else bar.met(value, ratio),
        "note": note,
        "limit": None,
    }


def table(rows: Iterable[Row]) -> str:
    """The rows for people; below one that misses its bar or goal what limits it."""
    lines = [line(("row", "value", "unit", "of C", "bar", "", "note"))]
    for row in rows:
        lines.append(line(cells(row)))
        if row["limit"]:
            lines.append(f"    limit: {row['limit']}")
    return "\n".join(lines)


def cells(row: Row) -> tuple[str, ...]:
    value, ratio = row["value"], row["ratio_to_cref"]
    digits = 2 if row["unit"] in {"ratio", "ms", "s"} else 0
    verdict = {True: "met", False: "NOT MET", None: "-" if row["bar"] else ""}
    return (
        str(row["name"]),
        f"{value:,.{digits}f}" if isinstance(value, int | float) else "-",
        str(row["unit"]),
        f"{ratio:.2f}" if isinstance(ratio, float) else "",
        str(row["bar"] or ""),
        verdict[row["met"] if isinstance(row["met"], bool) else None],
        str(row["note"]),
    )


def line(texts: Sequence[str]) -> str:
    name, value, unit, of_c, bar, met, note = texts
    return f"{name:<28}{value:>10} {unit:<7}{of_c:>5}  {bar:<25}{met:<8} {note}"
