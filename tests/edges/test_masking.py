"""Masking: no value passes, whatever the pieces; nothing else is touched."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge_actors.domain.launch import LaunchOrder, Receipt, Secrets
from forge_actors.domain.redaction import REDACTED
from forge_actors.edges.node import logs, wire
from forge_actors.edges.node.agent.masking import (
    LEAST_BYTES,
    MARK,
    MOST_LINES,
    Masking,
    masked_values,
)
from forge_actors.edges.node.agent.order import Malformed, Order
from tests.edges.node_jobs import opened, order, run, shell

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

STREAMS: tuple[logs.Stream, ...] = ("stdout", "stderr")
VALUE = "s3cret-of-the-house"


def mask(values: Sequence[bytes], *pieces: bytes) -> bytes:
    masking = Masking(tuple(values))
    written = b"".join(masking.feed(piece) for piece in pieces)
    return written + masking.flush()


def reference(values: Sequence[bytes], data: bytes) -> bytes:
    """The same on the whole text: every byte of a value is covered."""
    spans = sorted(
        (start, start + len(value))
        for value in values
        for start in range(len(data))
        if data.startswith(value, start)
    )
    out, place = b"", 0
    for start, end in spans:
        if start >= place:
            out += data[place:start] + MARK
        place = max(place, end)
    return out + data[place:]


def test_the_mark_is_that_of_every_other_redaction() -> None:
    assert MARK.decode() == REDACTED


@given(
    values=st.lists(st.text("ab", min_size=1, max_size=5), min_size=1, max_size=3),
    text=st.text("abc", max_size=40),
    cuts=st.lists(st.integers(0, 40), max_size=6),
)
def test_the_pieces_make_no_difference(
    values: list[str], text: str, cuts: list[int]
) -> None:
    raw, data = [value.encode() for value in values], text.encode()
    places = [0, *sorted(cuts), len(data)]
    pieces = [data[a:b] for a, b in itertools.pairwise(places)]
    assert mask(raw, *pieces) == reference(raw, data)


def test_a_value_that_is_cut_anywhere_is_masked() -> None:
    value = VALUE.encode()
    for place in range(len(value) + 1):
        pieces = b"a " + value[:place], value[place:] + b" b"
        assert mask([value], *pieces) == b"a [redacted] b"
    single = [bytes([byte]) for byte in b"<" + value + b">"]
    assert mask([value], *single) == b"<[redacted]>"


def test_what_only_begins_like_a_value_is_held_back_no_longer_than_needed() -> None:
    masking = Masking((b"secret",))
    assert masking.feed(b"see") == b"see"
    assert masking.feed(b" the se") == b" the "
    assert masking.feed(b"a") == b"sea"
    assert masking.feed(b" secr") == b" "
    assert masking.flush() == b"secr"


def test_a_longer_value_hides_also_what_a_shorter_one_leaves() -> None:
    values = [b"secret", b"secret-and-more"]
    assert mask(values, b"x secret-and", b"-more y secret z") == (
        b"x [redacted] y [redacted] z"
    )


@pytest.mark.parametrize("value", [b"", b"e", b"{", b"\n", b"12345"])
def test_a_value_that_is_too_short_eats_no_log(value: bytes) -> None:
    """L-11"""
    assert len(value) < LEAST_BYTES
    assert masked_values([value]) == ()


def test_of_a_value_of_several_lines_each_is_masked_too() -> None:
    values = masked_values([b"-----BEGIN-----\r\nabcdefgh\r\nxyz\r\n"])
    assert mask(values, b"  abcdefgh\n") == b"  [redacted]\n"
    assert mask(values, b"xyz\n") == b"xyz\n"


def test_of_a_value_of_very_many_lines_only_the_whole_is_looked_for() -> None:
    value = b"".join(b"line %d\n" % number for number in range(MOST_LINES + 1))
    assert masked_values([value]) == (value,)


def test_a_flood_that_looks_like_a_value_takes_no_longer_than_any_other() -> None:
    value = b"a" * 2000 + b"b"
    assert mask([value], *[b"a" * 65536] * 4) == b"a" * 65536 * 4


# Through the agent.


def output(wanted: LaunchOrder) -> bytes:
    return b"".join(
        logs.read(wanted.log, stream, 0, 1 << 20).data for stream in STREAMS
    )


async def end_of(
    home: Path, script: str, **secrets: str
) -> tuple[Receipt, LaunchOrder]:
    wanted = shell(home, script, secrets=Secrets(secrets))
    (receipt,) = await run(home, wanted)
    return receipt, wanted


async def test_a_job_gets_its_secrets_and_its_log_does_not(tmp_path: Path) -> None:
    script = """
        test "$TOKEN" = "$(cat value)" || exit 9
        printf 'a %s' "${TOKEN:0:7}"; ls / > /dev/null; printf '%s b\\n' "${TOKEN:7}"
        echo "out $TOKEN $TOKEN"; echo "err $TOKEN" >&2; exit 3
    """
    (tmp_path / "value").write_text(VALUE)
    receipt, wanted = await end_of(tmp_path, script, TOKEN=VALUE)
    assert receipt.exit_code == 3
    assert receipt.stderr_tail == "err [redacted]\n"
    out = logs.read(wanted.log, "stdout", 0, 1 << 20).data
    assert out == b"a [redacted] b\nout [redacted] [redacted]\n"
    assert receipt.stdout_bytes == logs.size(wanted.log, "stdout") == len(out)
    for file in tmp_path.rglob("*"):
        if file.is_file() and file.name != "value":
            assert VALUE.encode() not in file.read_bytes(), file


async def test_values_cut_by_reads_are_masked_in_the_ring_too(tmp_path: Path) -> None:
    # 20 bytes a line and a pipe of 64 KiB: reads end anywhere in it.
    script = 'yes "$TOKEN" | head -n 200000; echo END'
    wanted = shell(tmp_path, script, secrets=Secrets(TOKEN=VALUE), output_limit=1 << 20)
    (receipt,) = await run(tmp_path, wanted)
    assert receipt.stdout_bytes == 200_000 * len("[redacted]\n") + 4
    for name in ("job.stdout", "job.stdout.tail"):
        assert VALUE[:12].encode() not in (tmp_path / name).read_bytes()
    assert logs.read(wanted.log, "stdout", -15, 100).data == b"[redacted]\nEND\n"


async def test_bytes_that_are_no_text_are_a_value_too(tmp_path: Path) -> None:
    value = b"\xff\xfe\x80binary".decode("utf-8", "surrogateescape")
    receipt, wanted = await end_of(tmp_path, 'printf "<%s>" "$TOKEN"', TOKEN=value)
    assert receipt.exit_code == 0
    assert output(wanted) == b"<[redacted]>"


async def test_the_last_bytes_are_written_although_they_begin_like_a_value(
    tmp_path: Path,
) -> None:
    receipt, wanted = await end_of(tmp_path, f"printf 'x {VALUE[:9]}'", TOKEN=VALUE)
    assert output(wanted) == f"x {VALUE[:9]}".encode()
    assert receipt.stdout_bytes == 11


async def test_a_job_without_secrets_is_masked_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as launcher:
        first = shell(tmp_path, "true", job="one", secrets=Secrets(T=VALUE))
        second = order(tmp_path, "echo", VALUE, job="two")
        attempts = [launcher.launch(each) for each in (first, second)]
        for attempt in attempts:
            await attempt.exited()
    assert output(second) == f"{VALUE}\n".encode()


def test_an_order_is_printed_without_its_secrets(tmp_path: Path) -> None:
    wanted = order(tmp_path, "true", secrets=Secrets(TOKEN=VALUE))
    message = wire.start(wanted)
    for printed in (repr(wanted), str(wanted), repr(message), f"{wanted.secrets}"):
        assert VALUE not in printed
        assert "TOKEN" in printed
    assert VALUE.encode() in wire.encode(message)
    assert b"secrets" not in wire.encode(wire.start(order(tmp_path, "true")))


def test_a_secret_that_is_no_bytes_is_refused_without_being_repeated(
    tmp_path: Path,
) -> None:
    message = json.loads(wire.encode(wire.start(order(tmp_path, "true"))))
    with pytest.raises(Malformed) as caught:
        Order(message | {"secrets": {"TOKEN": f"{VALUE}\u20ac"}}, {})
    assert VALUE not in str(caught.value)
    assert caught.value.__context__ is None or caught.value.__suppress_context__
