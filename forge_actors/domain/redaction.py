"""Secrets and private paths taken out of text that is shown.

Every pattern but that of key blocks stays on one line and looks at less than `CARRY`
bytes, so that a stream needs no more than that of what came before: its answer is the
same wherever it was cut. What was recognised is redacted to its end, however long.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Bytes of an unfinished line that a stream holds back at most.
CARRY = 4096
#: A key block without an end is taken to be no longer.
MAX_KEY = 64 * 1024
REDACTED = "[redacted]"

#: Folders whose paths are private, and what stands for them; see `private_roots`.
Roots: TypeAlias = tuple[tuple[str, str], ...]

# Bytes of the stream kept in front of the part that is looked at.
_CONTEXT = 32
_LONGEST_NAME = 112
_MARK = REDACTED.encode()

# Every secret has one of these in it, in any case; looking for them is quick.
_TRIGGERS = (
    *(b"key", b"token", b"secret", b"passw", b"passphrase", b"pwd", b"credential"),
    *(b"authorization", b"cookie", b"bearer", b"-----begin", b"://", b"sk-"),
    *(b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_", b"github_pat_"),
    *(b"xox", b"xapp-", b"akia", b"asia", b"eyj"),
)
# All of what a trigger, and what a secret has in front of it, is made of.
_PART_OF_NAME = re.compile(rb"[\w:/-]*\Z")

# `keep` is shown, the rest is not. A named group around each kind says which run of
# bytes still belongs to it: a match is bounded, a secret is not.
_SECRET = re.compile(
    rb"""
    (?P<block>-----BEGIN[ ](?:[A-Z0-9]{1,16}[ ]){0,3}PRIVATE[ ]KEY(?:[ ]BLOCK)?-----)
    | (?P<sk>(?:(?<![A-Za-z0-9])|(?<=[0-9]m)|(?<=\[m))sk-[A-Za-z0-9_-]{16,512})
    | (?P<github>gh[pousr]_[A-Za-z0-9]{20,512}|github_pat_[A-Za-z0-9_]{20,512})
    | (?P<slack>(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10,512})
    | (?P<aws>(?<![A-Z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9]))
    | (?P<jwt>eyJ[A-Za-z0-9_-]{8,2048}\.[A-Za-z0-9_-]{8,512})
    | (?P<digest>(?P<keep_digest>[Aa](?i:uthorization)["']?[ \t]{0,4}
        [:=][ \t]{0,4}["']?)(?i:digest)[ \t]{1,4}[^\r\n]{4,512})
    | (?P<header>(?P<keep_header>[Aa](?i:uthorization)["']?[ \t]{0,4}
        [:=][ \t]{0,4}["']?)(?:(?i:bearer|basic|token|negotiate|apikey)[ \t]{1,4}
        [^\s"',;]{4,512}|[^\s"',;]{16,512}))
    | (?P<cookie>(?P<keep_cookie>[Cc](?i:ookie)["']?[ \t]{0,4}
        :[ \t]{0,4}["']?)[^\s=;"']{1,128}=[^\r\n"']{1,512})
    | (?P<assigned>(?<![\w-])
        (?:(?P<name>[\w-]{3,96}+)
            (?P<sep>["'\]]{0,2}[ \t]{0,4}(?:=>|:=|[=:])[ \t]{0,4})
          |(?P<option>--[\w-]{3,96}+)[ \t]{1,4}+)
        (?P<value>(?:(?i:bearer|basic)[ \t]{1,4})?
          (?:["']?\[redacted\]|(?P<quoted>"(?:[^"\\\r\n]|\\[^\r\n]){1,1024}"
            |'(?:[^'\\\r\n]|\\[^\r\n]){1,1024}')
          |["']?[^\s"'`<>&]{1,512})))
    | (?P<bearer>(?P<keep_bearer>[Bb](?i:earer)[ \t]{1,4})
        [A-Za-z0-9._~+/=-]{16,512})
    | (?P<url>(?P<keep_url>://)(?:[^\s/@:"'<>]{0,256}:[^\s/"'<>]{1,1024}
        |[^\s/@:"'<>]{16,1024})(?=@))
    """,
    re.VERBOSE,
)
_REST = {
    "digest": re.compile(rb"[^\r\n]*"),
    "header": re.compile(rb"[^\s\"',;]*"),
    "cookie": re.compile(rb"[^\r\n\"']*"),
    "assigned": re.compile(rb"[^\s\"'`<>&]*"),
    "bearer": re.compile(rb"[A-Za-z0-9._~+/=-]*"),
    "sk": re.compile(rb"[A-Za-z0-9_-]*"),
    "github": re.compile(rb"[A-Za-z0-9_]*"),
    "slack": re.compile(rb"[A-Za-z0-9-]*"),
    "jwt": re.compile(rb"[A-Za-z0-9_.-]*"),
}
_BLOCK_END = re.compile(
    rb"-----END (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
)
_LONGEST_END = 128
# Not in a block: it has base64, headers, and line ends that may be escaped.
_NO_BLOCK = re.compile(rb"[^A-Za-z0-9+/=\s\\:,.()-]")

_KEYWORD = re.compile(rb"(?i:key|token|secret|passw|passphrase|pwd|credential)")
_NAME_PARTS = re.compile(rb"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_SECRET_WORD = re.compile(
    rb".*(?:token|secret|passw(?:or)?d|passphrase|pwd|credentials?"
    rb"|(?:api|access|private|secret|auth|signing|encryption|master|license)key)"
)
#: Words that make a name one of control, and not of a secret.
_CONTROL = frozenset(
    b"fence fencing page next continuation cursor cache primary foreign public sort"
    b" partition idempotency idempotent unique unexpected expected missing reserved"
    b" max min total num count cancel cancellation csv routing object".split()
)
#: What ends the name of a thing that belongs to a secret and is none itself.
_ABOUT = frozenset(
    b"file files path dir name names id ids type types length len size count counts"
    b" ttl expiry expires url uri env index bytes limit error errors kind".split()
)
_WORD_BEFORE = re.compile(rb"([A-Za-z]+)[ ]\Z")
_NO_VALUE = re.compile(
    rb"(?i:none|null|true|false|undefined|required|missing|invalid|argument|option"
    rb"|expected|cannot|should|requires?|needed|provided|because)[.,;:!?)\]}]*"
    rb"|\[redacted\].*|\$\{?[A-Za-z_]\w*\}?|\$\(.*|%\(?\w*\)?s|\{\w*\}|\*{3,}|x{3,}"
)
_PROSE = re.compile(rb"[A-Z]?[a-z]+[.,;:!?)]*")
_CODE = re.compile(
    rb"(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*[(\[].*|[A-Za-z_]\w*(?:\.[a-z_]+)+"
)
_LEAST = 6


class Redactor:
    """Takes the secrets out of a stream of bytes, whatever its pieces.

    Whole lines come out at once; of an unfinished line what might become a secret.
    """

    def __init__(self) -> None:
        self._data = b""
        #: Where in it the part begins that was not given out yet.
        self._place = 0
        #: The kind of secret that goes on here, and how much of a block may follow.
        self._inside: str | None = None
        self._block_left = 0

    def feed(self, data: bytes) -> bytes:
        """What can be shown once these bytes have come too."""
        return self._advance(data, final=False)

    def flush(self) -> bytes:
        """The rest: nothing follows. What is fed afterwards is a new text."""
        rest = self._advance(b"", final=True)
        self._data, self._place, self._inside = b"", 0, None
        return rest

    def _advance(self, new: bytes, *, final: bool) -> bytes:
        self._data += new
        data = self._data
        shown: list[bytes] = []
        suspect = _is_suspect(data[self._place :])
        settled = len(data) if final else _settled(data, self._place)
        while self._inside is None or self._leave(final=final):
            match = _SECRET.search(data, self._place) if suspect else None
            if match is None or match.start() >= settled:
                if settled > self._place:
                    shown.append(data[self._place : settled])
                    self._place = settled
                break
            shown.append(self._redact(match))
        start = max(0, self._place - _CONTEXT)
        self._data, self._place = data[start:], self._place - start
        return b"".join(shown)

    def _redact(self, match: re.Match[bytes]) -> bytes:
        """Pass over one match; what to show up to where it ends."""
        before = match.string[self._place : match.start()]
        kind = match.lastgroup
        assert kind is not None, "every alternative is a named group"
        keep, start = match.start(), match.start()
        self._place = match.end()
        if kind == "assigned":
            if not _is_secret(match):
                # What is in it, or behind it, may be a secret of another kind. This
                # one is not found again: it begins with a word.
                self._place = start + 1
                return before + match.string[start : start + 1]
            keep = match.start("value")
            if match["quoted"] is not None:
                # With its quotes, JSON stays JSON.
                front = match.string[start : match.start("quoted") + 1]
                return before + front + _MARK + match["quoted"][-1:]
        elif f"keep_{kind}" in match.re.groupindex:
            keep = match.end(f"keep_{kind}")
        if kind == "block":
            self._block_left = MAX_KEY
        if kind == "block" or kind in _REST:
            self._inside = kind
        return before + match.string[start:keep] + _MARK

    def _leave(self, *, final: bool) -> bool:
        """Pass over what goes on of a secret; whether its end was found."""
        if self._inside == "block":
            found = self._leave_block(final=final)
        else:
            assert self._inside is not None
            rest = _REST[self._inside].match(self._data, self._place)
            assert rest is not None, "it matches nothing at least"
            self._place = rest.end()
            found = final or self._place < len(self._data)
        if found:
            self._inside = None
        return found

    def _leave_block(self, *, final: bool) -> bool:
        data, place = self._data, self._place
        last = place + self._block_left
        other = _NO_BLOCK.search(data, place, last)
        stop = other.start() if other else min(last, len(data))
        end = _BLOCK_END.search(data, place, stop + (0 if other else _LONGEST_END))
        if end is not None and end.start() < last:
            self._place = end.end()
            return True
        if other is not None or final or len(data) >= last + _LONGEST_END:
            self._place = stop
            return True
        # The end itself may have come in part.
        self._place = max(place, min(last, len(data) - _LONGEST_END))
        self._block_left = last - self._place
        return False


def _is_suspect(data: bytes) -> bool:
    lower = data.lower()
    return any(trigger in lower for trigger in _TRIGGERS)


def _settled(data: bytes, place: int) -> int:
    """Up to where nothing that may still come can make or end a secret."""
    line = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
    settled = max(place, line, len(data) - CARRY)
    if _is_suspect(data[settled:]):
        return settled
    name = _PART_OF_NAME.search(data, max(settled, len(data) - _LONGEST_NAME))
    assert name is not None, "it matches nothing at least"
    return name.start()


def _is_secret(match: re.Match[bytes]) -> bool:
    """Whether a name and what is assigned to it look like a secret."""
    name, sep = match["name"] or match["option"], match["sep"] or b""
    if not _KEYWORD.search(name):
        return False
    value = match["value"]
    bare = value.strip(b"\"'")
    if len(bare) < _LEAST or _NO_VALUE.fullmatch(bare):
        return False
    if not sep and bare.startswith(b"-"):
        return False
    words = [word.lower() for word in _NAME_PARTS.findall(name)]
    front = match.string[max(0, match.start() - _CONTEXT + 1) : match.start()]
    before = _WORD_BEFORE.search(front)
    if before is not None and before[1].lower() in _CONTROL:
        return False
    if not words or words[-1] in _ABOUT or _CONTROL.intersection(words):
        return False
    told = any(_SECRET_WORD.fullmatch(word) for word in words)
    if not told:
        if b"key" not in words:
            return False
        mixed = re.search(rb"[0-9]", bare) and re.search(rb"[A-Za-z]", bare)
        if len(words) == 1 and not (len(bare) >= 16 and mixed):
            return False
    if value[:1] in (b'"', b"'"):
        return True
    # What follows looks for ordinary text, and for code in a traceback.
    spaced = sep[-1:].isspace()
    if b":" in sep and spaced and _PROSE.fullmatch(bare):
        return False
    if b"=" in sep and spaced and _CODE.fullmatch(bare):
        return False
    return not (bare.isdigit() and words[-1] in (b"token", b"key"))


def redact(text: str) -> str:
    """The text with `[redacted]` in place of every secret that was recognised."""
    redactor = Redactor()
    # Half a surrogate pair is no reason to fail: it comes out as it went in.
    raw = text.encode("utf-8", "surrogatepass")
    shown = redactor.feed(raw) + redactor.flush()
    return shown.decode("utf-8", "surrogatepass")


def private_roots(
    user_homes: Iterable[str], forge_homes: Iterable[str], temporary: Iterable[str]
) -> Roots:
    """Roots for `scrub`, of every spelling of each folder; `/` itself is none."""
    named = (
        (forge_homes, "<forge-home>"),
        (user_homes, "<home>"),
        (temporary, "<tmp>"),
    )
    found: dict[str, str] = {}
    for folders, placeholder in named:
        for folder in folders:
            folder = folder.rstrip("/")
            if folder.startswith("/"):
                found.setdefault(folder, placeholder)
    # The longest first: a home may be in the temporary folder.
    return tuple(sorted(found.items(), key=lambda root: -len(root[0])))


def scrub(text: str, roots: Roots) -> str:
    """The text with placeholders for the private roots of its paths."""
    for folder, placeholder in roots:
        if folder not in text:
            continue
        # `/mnt/tmp` is not in `/tmp`; a longer root is too telling to be left anywhere.
        front = r"(?<![\w.~>-])" if folder.count("/") == 1 else ""
        # `/home/al` is not the front of `/home/alice`, nor of `/home/al.old`.
        path = rf"{front}{re.escape(folder)}(?![\w-]|\.\w)"
        text = re.sub(path, placeholder, text)
    return text


def bounded(text: str, limit: int) -> str:
    """At most `limit` characters: the first and the last ones, `…` between them."""
    if len(text) <= limit:
        return text
    last = (limit - 1) // 2
    return f"{text[: limit - 1 - last]}…{text[len(text) - last :]}"
