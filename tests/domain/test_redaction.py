"""Secrets and private paths leave what is shown; everything else stays."""

from __future__ import annotations

import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from forge_actors.domain.redaction import (
    CARRY,
    MAX_KEY,
    REDACTED,
    Redactor,
    bounded,
    private_roots,
    redact,
    scrub,
)

ALNUM = string.ascii_letters + string.digits
BLOCK = "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----"


def opaque(least: int, most: int = 60, alphabet: str = ALNUM) -> st.SearchStrategy[str]:
    """What no word looks like: it begins with a letter and a digit."""
    rest = st.text(alphabet, min_size=least - 4, max_size=most)
    return rest.map(lambda text: f"q7Z9{text}")


#: Where a secret stands, with `{}` in its place; its least length.
KINDS: list[tuple[str, int]] = [
    ("Authorization: Bearer {}", 8),
    ("curl -H 'authorization: Basic {}' host", 8),
    ("Proxy-Authorization: {}", 16),
    ("Cookie: session={}; theme=dark", 8),
    ("set-cookie: id={}; Path=/", 8),
    ("deploy --token {} --force", 8),
    ("deploy --password={}", 8),
    ("deploy --api-key {}", 8),
    ("export STRIPE_API_KEY={}", 8),
    ("DB_PASSWORD={}", 8),
    ('{{"clientSecret": "{}", "a": 1}}', 8),
    ("githubToken: {}", 8),
    ("os.environ['AUTH_TOKEN'] = '{}'", 8),
    ("AUTH_TOKEN=Bearer {}", 8),
    ("postgres://app:{}@db.example/app", 8),
    ("cloning https://{}:x@example.com/r.git", 8),
    ("bearer {}", 16),
    ("sk-{}", 16),
    ("\x1b[31msk-{}\x1b[0m", 16),
    ("ghp_{}", 20),
    ("gho_{}", 20),
    ("github_pat_{}", 22),
    ("xoxb-{}", 12),
    ("jwt eyJhbGciOiJIUzI1NiJ9.{}.c2lnbmF0dXJl", 12),
    (BLOCK, 16),
]
ORDINARY = [
    "",
    "fencing token: 12345678abc",
    "next_page_token=abcdefghijk&page=2",
    "SyntaxError: Unexpected token: identifier9",
    "max_tokens: 4096000",
    "password: required",
    "--token requires an argument",
    "the secret of life: patience",
    "token = os.environ['X']",
    "token=$TOKEN and --token ${GITHUB_TOKEN}",
    "cache_key=node-modules-4f2k9x01",
    "primary key: repository_id",
    "monkey=bananas12 keyboard: qwerty99",
    "AWS_SECRET_FILE=/run/secrets/aws",
    "https://example.com:8080/path@2 ssh://git@github.com/a/b",
    "task-runner-is-a-long-name-here risk-assessment-of-the-year",
    "2026-01-02 03:04:05,678 INFO root: 3 of 4 done",
    "cookies: none",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "\udcff \ud800 ä \N{SNOWMAN} \0\x1b[1m",
]


def stream(pieces: list[bytes]) -> bytes:
    redactor = Redactor()
    return b"".join(map(redactor.feed, pieces)) + redactor.flush()


@given(st.sampled_from(KINDS), st.data())
def test_no_secret_survives(kind: tuple[str, int], data: st.DataObject) -> None:
    place, least = kind
    secret = data.draw(opaque(least))
    text = f"before {place.format(secret)}\nafter"
    shown = redact(text)
    assert secret not in shown
    assert REDACTED in shown
    assert shown.startswith("before ")
    assert shown.endswith("\nafter")
    assert redact(shown) == shown


@pytest.mark.parametrize(
    "secret",
    [
        "AKIAABCDEFGHIJKLMNOP",
        "sk-" + "a1" * 40_000,
        "eyJ" + "a1" * 300 + ".a1b2c3d4e5" * 999,
    ],
)
def test_a_secret_goes_to_its_end_however_long(secret: str) -> None:
    assert redact(f"a {secret} b") == f"a {REDACTED} b"


def test_a_block_goes_to_its_end_or_to_what_is_no_part_of_one() -> None:
    assert redact(BLOCK.format("QUJD\n" * 9000) + "\nx") == f"{REDACTED}\nx"
    begin = BLOCK.partition("\n")[0]
    assert redact(f'"{begin}\\nQUJD" rest') == f'"{REDACTED}" rest'
    assert redact(f"{begin}\nQUJD\n") == REDACTED
    assert redact(begin + "Q" * (MAX_KEY + 3)) == f"{REDACTED}QQQ"


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_is_unchanged(text: str) -> None:
    assert redact(text) == text


@given(st.lists(st.sampled_from(["the", "job:", "3.5", "s", "(try", "2)", "/a/b:"])))
def test_ordinary_words_are_unchanged(words: list[str]) -> None:
    text = " ".join(words)
    assert redact(text) == text


def test_quotes_stay_so_that_json_stays_json() -> None:
    assert redact('{"api_key": "two words"}') == '{"api_key": "[redacted]"}'


FRAGMENTS = st.sampled_from(
    [
        *(place.format("q7Z9" + "b" * 20) for place, _ in KINDS),
        *(line for line in ORDINARY if line.isascii()),
        *("\n", "\r\n", " ", "-", "=", ":", '"', "'", "key", "x" * 200, "A" * CARRY),
        *("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"),
    ]
)


@given(
    st.lists(FRAGMENTS | st.text(ALNUM + "-_.:/='\" \n", max_size=20), max_size=12),
    st.lists(st.integers(1, 400), min_size=1, max_size=8),
)
@example(["-----BEGIN PRIVATE KEY-----", "A" * CARRY * 20, "key=abcdefgh1"], [399])
def test_the_pieces_of_a_stream_make_no_difference(
    parts: list[str], sizes: list[int]
) -> None:
    raw = "".join(parts).encode()
    pieces, place = [], 0
    while place < len(raw):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(raw[place : place + size])
        place += size
    assert stream(pieces) == stream([raw])


def test_what_is_held_back_of_a_line_is_bounded() -> None:
    redactor = Redactor()
    taken = given_out = 0
    piece = b"a token " * 8
    for _ in range(3 * CARRY // len(piece)):
        taken += len(piece)
        given_out += len(redactor.feed(piece))
        assert taken - given_out <= CARRY


def test_whole_lines_come_out_at_once_and_of_the_last_what_is_harmless() -> None:
    redactor = Redactor()
    assert redactor.feed(b"token\n") == b"token\n"
    assert redactor.feed(b"50 percent done") == b"50 percent "
    assert redactor.feed(b" password=") == b""
    assert redactor.feed(b"hunter22\n") == b"done password=[redacted]\n"
    assert redactor.flush() == b""


# Paths


ROOTS = private_roots(
    ["/home/al"], ["/tmp/forge-x", "/home/al/.local/state/forge-actors"], ["/tmp", "/"]
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("in /home/al/src: no", "in <home>/src: no"),
        ("/home/al", "<home>"),
        ("cd /home/al.", "cd <home>."),
        ("-I/home/al/include", "-I<home>/include"),
        ("file:///home/al/x", "file://<home>/x"),
        ("/home/alice /home/al.old /home/al-2", "/home/alice /home/al.old /home/al-2"),
        ("/home/al/.local/state/forge-actors/logs", "<forge-home>/logs"),
        ("'/tmp/forge-x/logs' '/tmp/y'", "'<forge-home>/logs' '<tmp>/y'"),
        ("/mnt/tmp/x /tmpfs", "/mnt/tmp/x /tmpfs"),
        ("/usr/bin", "/usr/bin"),
    ],
)
def test_private_roots_are_replaced(text: str, wanted: str) -> None:
    assert scrub(text, ROOTS) == wanted
    assert scrub(wanted, ROOTS) == wanted


# Bounds


@given(st.text(), st.integers(1, 50))
def test_a_bounded_text_keeps_both_ends(text: str, limit: int) -> None:
    shown = bounded(text, limit)
    assert len(shown) == min(len(text), limit)
    if len(text) > limit:
        front, _, back = shown.partition("…") if "…" not in text else ("", "", "")
        assert text.startswith(front)
        assert text.endswith(back)
    else:
        assert shown == text
