"""The results as a page: shares by room, and what is known of each survivor."""

from __future__ import annotations

import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from mutation import ROOMS
from mutation.leaving import WHY
from mutation.mutants import Mutant
from mutation.sampling import Share

EXPLAINED = Path(__file__).with_name("explained.toml")
#: Why a survivor may stay one; what has no entry in explained.toml is "not explained".
KINDS = {
    "equivalent": "nothing that can be seen differs",
    "message": "only what a message says differs",
    "speed": "only the time or the memory it takes differs",
    "elsewhere": "tests of other rooms are about it, which were not tried",
    "open": "a test is missing",
}
COLUMNS = (
    *("room", "mutants", "left out", "tried", "killed", "of them by time"),
    *("survived", "no test", "share killed, 95 %"),
)
Verdict = tuple[Mutant, str]


def explanations(file: Path = EXPLAINED) -> dict[tuple[str, str, str], tuple[str, str]]:
    """By place, code before and code after: the kind, and the reason in a line."""
    with file.open("rb") as opened:
        entries = tomllib.load(opened)["survivor"]
    known = {}
    for entry in entries:
        if entry["kind"] not in KINDS:
            raise ValueError(f"{entry['place']}: no kind {entry['kind']!r}")
        place = entry["place"], entry["was"], entry["now"]
        known[place] = entry["kind"], entry["reason"]
    return known


def page(
    verdicts: Iterable[Verdict],
    left_out: Mapping[str, Counter[str]],
    made: Mapping[str, int],
    title: str,
) -> str:
    by_room: dict[str, list[Verdict]] = defaultdict(list)
    for mutant, verdict in verdicts:
        by_room[mutant.room].append((mutant, verdict))
    lines = [f"# {title}", "", *_rooms(by_room, left_out, made), ""]
    lines += ["Left out:", ""]
    lines += [
        f"- {why}: {sum(left_out[room][key] for room in ROOMS)}"
        for key, why in WHY.items()
    ]
    known = explanations()
    by_kind: dict[str, list[tuple[Mutant, str]]] = defaultdict(list)
    for mutant, verdict in (one for room in ROOMS for one in by_room[room]):
        if verdict in {"survived", "no tests"}:
            place = mutant.place, mutant.was, mutant.now
            kind, reason = known.get(place, ("", verdict))
            by_kind[kind].append((mutant, reason))
    for kind, why in [*KINDS.items(), ("", "not explained")]:
        if by_kind[kind]:
            lines += ["", f"## {kind.capitalize() or 'The others'}: {why}", ""]
            lines += [_survivor(*one) for one in by_kind[kind]]
    return "\n".join(lines) + "\n"


def _rooms(
    by_room: Mapping[str, list[Verdict]],
    left_out: Mapping[str, Counter[str]],
    made: Mapping[str, int],
) -> list[str]:
    lines = [
        f"| {' | '.join(COLUMNS)} |",
        "| --- " + "| ---: " * (len(COLUMNS) - 1) + "|",
    ]
    for room in ROOMS:
        counts = Counter(verdict for _, verdict in by_room.get(room, []))
        tried = sum(counts.values())
        if not tried:
            continue
        killed = counts["killed"] + counts["timeout"]
        cells = [made[room], sum(left_out[room].values()), tried, killed]
        cells += [counts["timeout"], counts["survived"], counts["no tests"]]
        numbers = " | ".join(f"{cell:,}" for cell in cells)
        lines.append(f"| `{room}` | {numbers} | {Share(killed, tried)} |")
    return lines


def _survivor(mutant: Mutant, reason: str) -> str:
    was, now = (_one_line(code) for code in (mutant.was, mutant.now))
    return f"- `{mutant.place}`, line {mutant.line}: `{was}` to `{now}`: {reason}"


def _one_line(code: str) -> str:
    return " ".join(code.split()).replace("`", "'")
