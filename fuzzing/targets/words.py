"""What people write into one field: claims, times, causes, places, sizes."""

from __future__ import annotations

import math
from itertools import islice

from forge_actors.domain.causes import parse_cause
from forge_actors.domain.claims import conflict, overlap, parse_claim, strongest
from forge_actors.domain.deadlines import parse_budget, parse_duration
from forge_actors.domain.epic.urls import parse_epic_url
from forge_actors.domain.github.places import (
    checked_base,
    parse_issue_url,
    parse_place,
    remote_place,
    within,
)
from forge_actors.domain.harmless import clean_lines
from forge_actors.domain.idempotency import key_of
from forge_actors.domain.outputs import parse as parse_outputs
from forge_actors.domain.placeholders import fill, names
from forge_actors.domain.process_limits import parse_memory
from forge_actors.domain.requests import JobRequest, decode_argv, encode_argv
from forge_actors.domain.shell_places import check_shells
from forge_actors.domain.sizes import parse_size
from forge_actors.domain.tracing import parse_trace
from forge_actors.domain.triggers import cron, passed, windows
from forge_actors.domain.webhooks import parse_target
from forge_actors.runtime.moments import parse_day, parse_moment
from forge_actors.runtime.schedule_requests import moment_of
from fuzzing.target import (
    Broken,
    Target,
    argument_of,
    attempt,
    check_message,
    same,
    text_of,
)

#: Some moment in November of 2026.
NOW = 1_795_000_000.0
_DECLARED = ("BUILD", "VERSION", "_x")
_ZONES = ("UTC", "Europe/Prague", "America/St_Johns", "Australia/Lord_Howe")


def claims(data: bytes) -> None:
    lines = argument_of(data).split("\n")[:20]
    tried = [attempt(parse_claim, line, checkout="/a") for line in lines]
    found = [claim for claim in tried if claim is not None]
    for claim in found:
        same(parse_claim(str(claim), checkout=claim.checkout), claim, "read again")
        if claim.mode != "read" and not conflict(claim, claim):
            raise Broken(f"{claim} may be held twice")
        if not overlap(claim, claim):
            raise Broken(f"{claim} is not what it is")
        first = found[0]
        same(conflict(first, claim), conflict(claim, first), f"{first} and {claim}")
    kept = strongest(found)
    same(strongest(kept), kept, "the strongest of the strongest")


def durations(data: bytes) -> None:
    text = argument_of(data)
    seconds = attempt(parse_duration, text, field="timeout")
    if seconds is not None:
        if not 0 <= seconds < math.inf:
            raise Broken(f"{text!r} is {seconds}")
        same(parse_duration(f"{seconds!r}s", field="timeout"), seconds, "read again")
    attempt(parse_budget, text, field="timeout")
    size = attempt(parse_size, text, field="memory")
    if size is not None:
        same(parse_size(str(size), field="memory"), size, "read again")
    attempt(parse_memory, text, field="memory")


def moments(data: bytes) -> None:
    text = argument_of(data)
    zone = _ZONES[len(data) % len(_ZONES)]
    for found in (
        attempt(parse_day, text, NOW, field="since"),
        attempt(parse_moment, text, NOW, field="since"),
        attempt(moment_of, text, zone, field="at"),
        attempt(moment_of, text, None, field="at"),
    ):
        if found is not None and not math.isfinite(found):
            raise Broken(f"{text!r} is {found}")


def crons(data: bytes) -> None:
    text = argument_of(data)
    fields, _, named = text.partition("|")
    zone = named or _ZONES[len(data) % len(_ZONES)]
    trigger = attempt(cron, fields, zone)
    if trigger is None:
        return
    same(cron(trigger.expression, trigger.timezone), trigger, "read again")
    check_message(str(trigger))
    found = list(islice(windows(trigger, NOW, 0), 4))
    dues = [NOW, *(window.due for window in found)]
    if dues != sorted(set(dues)) or len({window.key for window in found}) < len(found):
        raise Broken(f"{text!r} comes at {dues}")
    if found:
        back = passed(trigger, NOW, 0, found[-1].due, 9)
        same((back.last, back.more), (found, False), "looked at from behind")


def causes(data: bytes) -> None:
    text = argument_of(data)
    cause = attempt(parse_cause, text)
    if cause is not None:
        same(parse_cause(str(cause)), cause, "read again")
        check_message(cause.told)


def places(data: bytes) -> None:
    text = argument_of(data)
    place = attempt(parse_place, text, field="place")
    if place is not None:
        same(parse_place(str(place), field="place"), place, "read again")
    if (remote := remote_place(text)) is not None:
        url = f"https://{remote.host}/{remote.repo}"
        same(remote_place(url), remote, f"read again as {url}")
    base = attempt(checked_base, text, field="url")
    if base is not None:
        same(checked_base(base, field="url"), base, "read again")
        if not within(base, f"{base}/repos/a/b") and len(base) < 2000:
            raise Broken(f"nothing is below {base!r}")
    for found in (
        attempt(parse_issue_url, text),
        attempt(parse_epic_url, text),
    ):
        if found is not None:
            url = f"https://{found.place.host}/{found.place.repo}/issues/{found.number}"
            same(parse_issue_url(url), found, f"read again as {url}")
            check_message(str(found))


def hooks(data: bytes) -> None:
    text = argument_of(data)
    target = attempt(parse_target, text, field="url")
    if target is not None:
        url = f"{target.scheme}://{target.authority}{target.path}"
        if len(url) <= 2000:
            same(parse_target(url, field="url"), target, "read again")
        check_message(target.shown)
    key = attempt(key_of, text)
    if key is not None:
        same(key_of(key), key, "read again")
    if (trace := parse_trace(text)) is not None:
        same(parse_trace(str(trace)), trace, "read again")


def outputs(data: bytes) -> None:
    found = parse_outputs(_DECLARED, text_of(data))
    for name, value in found.values.items():
        if name not in _DECLARED or clean_lines(value) != value:
            raise Broken(f"{name} is {value!r}")
    if found.problem is not None:
        check_message(found.problem)
    kept = {name: v for name, v in found.values.items() if "END-END" not in v}
    lines = [f"{name}<<END-END\n{v}\nEND-END" for name, v in kept.items()]
    again = parse_outputs(tuple(kept), "\n".join(lines))
    same(again, (kept, None), "written and read again")


def placeholders(data: bytes) -> None:
    text = argument_of(data)
    wanted = set(names(text))
    filled = attempt(fill, text, dict.fromkeys(wanted, "x"), field="argv")
    if filled is None:
        raise Broken("it has values for all of its names")
    if "$" not in text:
        same(filled, text, "without a place")
    refused = attempt(fill, text, {}, field="argv") is None
    same(refused, bool(wanted), "places without a value")


def shells(data: bytes) -> None:
    argv = argument_of(data).split("\n")
    job = JobRequest(".", list(argv))
    attempt(check_shells, job, "job")
    decoded = attempt(decode_argv, list(argv), field="argv")
    if decoded is not None:
        same(decode_argv(encode_argv(decoded), field="argv"), decoded, "as JSON")


TARGETS = (
    Target(
        "claims",
        "claims are read as they are written, and conflict both ways",
        claims,
        (
            b"write:path:src/a\nread:path:src\nexclusive:repo-content",
            b"read:workspace\nwrite:git-ref:refs/heads/main\nexclusive:release",
            b"write:path:../x\nwrite:path:src/*/b\nread:session:a:b",
        ),
        (b"exclusive:", b"write:path:", b"repo-content", b"workspace", b"git-refs"),
    ),
    Target(
        "durations",
        "lengths of time and sizes are finite, and read as they are written",
        durations,
        (b"90", b"1.5h", b"30m", b"2d", b"250 ms", b"512M", b"2GiB", b"1e400", b"nan"),
        (b"ms", b"GiB", b"1e9", b"inf"),
    ),
    Target(
        "moments",
        "days and times are moments, or refused",
        moments,
        (
            *(b"2026-01-02T03:04", b"2026-01-02", b"2h", b"0001-01-01T00:00"),
            *(b"9999-12-31T23:59:59+14:00", b"2026-03-29T02:30", b"20260102T030405Z"),
        ),
        (b"T00:00", b"+23:59", b"Z", b"-W53-7", b"0001-01-01"),
    ),
    Target(
        "cron",
        "windows of a cron expression come in order, from the front and from behind",
        crons,
        (
            *(b"*/5 * * * *", b"0 3 * * 1-5|Europe/Prague", b"@daily|UTC"),
            *(b"0 0 29 2 *", b"30 2 L * 7#2", b"0 0 LW jan,mar *|../../etc/passwd"),
        ),
        (b"*/", b"@yearly", b"mon", b"LW", b"5#3", b"|Africa/Cairo"),
    ),
    Target(
        "causes",
        "what a schedule waits for is read as it is written",
        causes,
        (
            *(b"clean", b"succeeded:label:nightly", b"all:build,lint", b"ended:*"),
            *(b"branch:release/*", b"file:**/*.py", b"issues:octo/demo,label:bug"),
        ),
        (b"all:", b"label:", b"kind:", b"schedule:", b"issues:", b"https://"),
    ),
    Target(
        "places",
        "repositories and issues of GitHub are one place however they are written",
        places,
        (
            *(b"octo/demo", b"ghe.example/octo/demo", b"git@github.com:octo/demo.git"),
            *(b"https://github.com/octo/demo/issues/7", b"ssh://git@h:22/octo/demo"),
            *(b"https://ghe.example:8443/api/v3", b"http://[::1]:80/api"),
            b"https://github.com/octo/demo/pull/7",
        ),
        (b"https://", b"/issues/", b".github.com", b".ghe.com", b":443", b"@", b"["),
    ),
    Target(
        "hooks",
        "addresses of webhooks, keys of requests and traces are read as written",
        hooks,
        (
            *(b"https://hooks.example/x?y", b"http://127.0.0.1:8080", b'"key-1"'),
            *(b"http://[::1]", b"00-" + b"1" * 32 + b"-" + b"2" * 16 + b"-01"),
        ),
        (b"https://", b"127.", b"localhost", b"[::1]"),
    ),
    Target(
        "outputs",
        "values that a job hands on are those declared, and free of control characters",
        outputs,
        (
            b"BUILD=7\nVERSION<<END\na\nb\nEND\n",
            b"_x=\x1b[31m\nOTHER=1\nBUILD<<E E\nnonsense",
        ),
        (b"BUILD=", b"VERSION<<", b"_x<<E\n"),
    ),
    Target(
        "placeholders",
        "a place is filled if there is a value, and nothing else is",
        placeholders,
        (b"deploy ${build.version} $${x} $5 ${", b"${a}${b-c}"),
        (b"${", b"}", b"$${"),
    ),
    Target(
        "arguments",
        "arguments are the same bytes again, and shells take no places",
        shells,
        (b"echo\nhi", b"sh\n-c\necho ${x}", b"bash\n-eo\npipefail\n-c\n\xff"),
        (b"sh\n-c\n", b"${x}", b"env\n", b"\xff"),
    ),
)
