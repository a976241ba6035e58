"""What is shown of texts that others wrote, and what is taken out of them."""

from __future__ import annotations

import re
from html import unescape
from xml.etree import ElementTree as ET

from forge_actors.cli.cleaner import Cleaner
from forge_actors.cli.dashboard.log_lines import LogLines
from forge_actors.cli.log_frames import Prefixer
from forge_actors.domain.harmless import clean, clean_lines
from forge_actors.domain.last_lines import last_lines
from forge_actors.domain.picture.markup import escape, hint, tag
from forge_actors.domain.redaction import Redactor, redact, scrub
from forge_actors.edges.node.agent.masking import MARK, Masking, masked_values
from fuzzing.target import Broken, Target, in_pieces, pieces_of, same, text_of

#: What no text may have when it is shown.
_MOVES = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
#: Secrets whose form alone says what they are, wherever they are.
_PLAIN_SECRETS = re.compile(rb"gh[pousr]_[A-Za-z0-9]{20}|github_pat_[A-Za-z0-9_]{20}")


def terminal(data: bytes) -> None:
    pieces, whole = pieces_of(data)
    text = whole.decode("utf-8", "surrogateescape")
    for shown in (clean(text), clean_lines(text)):
        if _MOVES.search(shown):
            raise Broken(f"{shown!r} moves the cursor")
    same(clean_lines(clean_lines(text)), clean_lines(text), "cleaned twice")
    if "\n" in clean(text):
        raise Broken("one line has two")
    at_once = Cleaner().feed(whole, final=True)
    if _MOVES.search(at_once):
        raise Broken(f"{at_once!r} moves the cursor")
    cleaner = Cleaner()
    fed = "".join([*map(cleaner.feed, pieces), cleaner.feed(b"", final=True)])
    same(fed, at_once, "in pieces")
    lines, one = LogLines(), LogLines()
    for piece in pieces:
        lines.feed(piece)
    lines.feed(b"", final=True)
    one.feed(whole, final=True)
    same(lines.lines, one.lines, "lines in pieces")
    if any("\n" in line for line in one.lines):
        raise Broken("a line has two")


def prefixes(data: bytes) -> None:
    pieces, whole = pieces_of(data)
    same(_prefixed(pieces), _prefixed([whole]), "in pieces")
    for line in _prefixed([whole]).split(b"\n")[:-1]:
        if not line.startswith(b"build | "):
            raise Broken(f"{line!r} is nobody's")


def _prefixed(pieces: list[bytes]) -> bytes:
    prefixer = Prefixer(clean=True)
    about = {"job": "a1", "name": "build", "stream": None, "ended": False}
    prefixer.feed(about, b"")
    frame = {**about, "stream": "stdout"}
    shown = [prefixer.feed(frame, piece) for piece in pieces]
    return b"".join([*shown, prefixer.feed({**frame, "ended": True}, b"")])


def redaction(data: bytes) -> None:
    pieces, whole = pieces_of(data)
    at_once = Redactor()
    shown = at_once.feed(whole) + at_once.flush()
    redactor = Redactor()
    fed = b"".join([*map(redactor.feed, pieces), redactor.flush()])
    same(fed, shown, "in pieces")
    if found := _PLAIN_SECRETS.search(shown):
        raise Broken(f"{found[0]!r} is shown")
    text = text_of(whole)
    redact(text)
    last_lines(text)
    scrub(text, (("/home/al", "<home>"), ("/tmp", "<tmp>")))


def masking(data: bytes) -> None:
    front, _, output = data.partition(b"\0")
    values = masked_values(front.split(b"|")[:8])
    pieces, whole = pieces_of(output)
    masking = Masking(values)
    fed = b"".join([*map(masking.feed, pieces), masking.flush()])
    same(fed, _masked(values, whole), f"{values} taken out of {whole!r}")


def _masked(values: tuple[bytes, ...], data: bytes) -> bytes:
    """The same by the simplest way there is: a mark for each run of hidden bytes, and
    none between values that only touch."""
    hidden, begins = bytearray(len(data)), set()
    spans = sorted(
        (start, start + len(value))
        for value in values
        for start in range(len(data))
        if data.startswith(value, start)
    )
    place = 0
    for start, end in spans:
        if start >= place:
            begins.add(start)
        place = max(place, end)
        hidden[start:end] = b"\1" * (end - start)
    out = bytearray()
    for at, byte in enumerate(data):
        if at in begins:
            out += MARK
        if not hidden[at]:
            out.append(byte)
    return bytes(out)


def markup(data: bytes) -> None:
    text = clean_lines(text_of(data)).replace("\ufffe", "").replace("\uffff", "")
    same(unescape(escape(text)), text, "escaped and read again")
    element = ET.fromstring(tag("g", hint([text]), title=text, x=1.5))
    same((element.tag, len(element)), ("g", 1), "nothing leaves its place")
    same(element[0].text or "", text, "as a browser has it")
    same(
        element.get("title"),
        text.replace("\n", " ").replace("\t", " "),
        "in an attribute",
    )


_COLOURED = b"\x1b[1;31mred\x1b[0m \x1b]0;title\x07 a\rb\r\n\xc2\x9b2Jx\xe2\x80\xae\x85"

TARGETS = (
    Target(
        "terminal",
        "nothing shown moves the cursor, and pieces are shown as the whole is",
        terminal,
        in_pieces(_COLOURED, b"\x1bP" + b"q" * 64 + b"\x1b\\x\x1b[", b"\xff\xfe\r"),
        (b"\x1b[", b"\x1b]", b"\x07", b"\x1b\\", b"\xc2\x9b", b"\r\n", b"\xe2\x80\xae"),
    ),
    Target(
        "prefixes",
        "each line of several jobs has the name of its job, whatever the pieces",
        prefixes,
        in_pieces(_COLOURED, b"a\nb\n\nc"),
        (b"\n", b"\x1b["),
    ),
    Target(
        "redaction",
        "secrets are taken out the same in pieces, and none of a plain form is left",
        redaction,
        in_pieces(
            b"token=abcdef123456 API_KEY: 'x y z 1 2 3'\nok\n",
            b"a ghp_" + b"a1" * 20 + b" sk-" + b"b2" * 12 + b" AKIA" + b"C3" * 8,
            b"-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nx",
            b"Authorization: Bearer abcdefghijklmnop\nhttps://u:pw@h/ Cookie: a=b\n",
            b'{"password":"hunter2!","n":1} --token abcdefgh /home/al/x\n',
        ),
        (
            *(b"token=", b"password: ", b"Bearer ", b"ghp_", b"github_pat_", b"sk-"),
            *(b"-----BEGIN PRIVATE KEY-----", b"-----END PRIVATE KEY-----", b"eyJ"),
            *(b"Authorization: ", b"Cookie: ", b"://", b"xoxb-", b"[redacted]"),
        ),
    ),
    Target(
        "masking",
        "values of secrets are taken out of a stream wherever it is cut",
        masking,
        (
            b"secret1|secret1234\0\0a secret1234 secret1secret1 secre",
            b"abcabc|bcabca\0\3\x20\x60\xa0abcabcabcabc abcab",
            b"line one\nline two\0\0x line one y line two",
        ),
        (b"secret1", b"|", b"[redacted]"),
    ),
    Target(
        "markup",
        "whatever a text has, it stays text in a picture",
        markup,
        (b"a <b> & \"c\" 'd'", b"</title><script>", b"&amp;\xff\n\t"),
        (b"<", b"&", b'"', b"]]>", b"<!--", b"&#0;"),
    ),
)
