"""The inbox: everything that needs a person, with the evidence and what can be done.

It follows from what is stored of jobs, claims, providers and worktrees; of an item
itself only is known whether somebody has seen to it, and was told of it. What goes by
itself, such as a limit that has an end, is no item.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from forge_actors.domain.accounts import ATTENTION
from forge_actors.domain.errors import NotFound, Refused
from forge_actors.domain.redaction import bounded, redact

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

ItemKind = Literal[
    "question",
    "approval",
    "provider",
    "budget",
    "aside",
    "claims",
    "webhook",
    "trust",
    "workflow",
    "effect",
    "job",
    "controller",
    "epic",
    "worktree",
]

#: Items that are shown; the rest is counted.
MAX_ITEMS = 100
#: Items of which it is kept what was done about them; the oldest go first.
MAX_MARKS = 10_000
#: Characters of a command that are shown.
MAX_COMMAND = 300
#: Characters of an item's id that name it.
SHORTEST = 4

Json = dict[str, Any]


class Mark(Struct, frozen=True):
    """What was done about an item, and when."""

    item: str
    dismissed_at: float | None = None
    notified_at: float | None = None

    def after(self, earlier: Mark | None) -> Mark:
        """Both: what was done stays done."""
        if earlier is None:
            return self
        return Mark(
            self.item,
            earlier.dismissed_at if self.dismissed_at is None else self.dismissed_at,
            earlier.notified_at if self.notified_at is None else self.notified_at,
        )


class Item(Struct, frozen=True):
    """One thing that a person has to see to.

    The same thing has the same id, also after a restart; when it happens anew, another.
    """

    id: str
    kind: ItemKind
    #: In a sentence.
    says: str
    since: str | None
    repo: str | None
    job: str | None
    #: Where to look, by what it is.
    evidence: dict[str, str]
    #: Commands to type, of which one is to be chosen.
    actions: list[str]


class Inbox(Struct, frozen=True):
    """The items by urgency, those that were not shown as there were too many, and
    those that somebody has dismissed."""

    items: list[Item]
    more: int
    dismissed: int

    @property
    def count(self) -> int:
        return len(self.items) + self.more


class Facts(Struct, kw_only=True):
    """What is stored, in the form in which readers see it; each the newest first."""

    #: Ids of the jobs that ended so that a person has to look.
    attention: Sequence[str] = ()
    #: Jobs that wait for an answer, or for approval.
    asking: Sequence[Json] = ()
    #: Ids of jobs that were kept from effects.
    kept_from: Sequence[str] = ()
    quarantined: Sequence[Json] = ()
    aside: Sequence[Json] = ()
    #: The closed accounts by provider.
    closed: dict[str, Json] = {}
    #: Budgets of today that are spent.
    budgets: Sequence[Item] = ()
    worktrees: Sequence[Json] = ()
    #: Webhooks that are told nothing any more.
    hooks: Sequence[Json] = ()
    #: Repositories whose files say something else than what is trusted of them.
    differing: Sequence[Item] = ()
    #: Steps of workflows that ask, and workflows that stopped until somebody looks.
    workflows: Sequence[Item] = ()
    #: Controllers that wait for a person.
    controllers: Sequence[Item] = ()
    #: Runs of EPICs, and issues of them, that somebody has to look at.
    epics: Sequence[Item] = ()
    #: The folder of the logs of an attempt.
    logs: Callable[[str, int], str]


def inbox(
    facts: Facts,
    dismissed: Collection[str],
    job: Callable[[str], Json],
    limit: int = MAX_ITEMS,
) -> Inbox:
    """Everything that needs a person. `job` shows one of `facts.attention`: it is only
    called for those that are among the items."""
    found = [
        _approval(each) if _held_back(each) else _question(each)
        for each in facts.asking
    ]
    found += facts.workflows
    found += [
        _provider(name, account)
        for name, account in facts.closed.items()
        if account["reason"] in ATTENTION
    ]
    found += facts.budgets
    found += [_aside(each) for each in facts.aside]
    found += [_claims(each) for each in facts.quarantined]
    found += [_hook(each) for each in facts.hooks]
    found += [*facts.differing, *facts.controllers, *facts.epics]
    found += [_effect(job(each), facts.logs) for each in facts.kept_from]
    stuck = [_worktree(each) for each in facts.worktrees]
    open_ = [each for each in found if each.id not in dismissed]
    left = [each for each in stuck if each.id not in dismissed]
    ended = [each for each in facts.attention if of_job(each) not in dismissed]
    room = max(0, limit - len(open_))
    shown = [*open_, *(_job(job(each), facts.logs) for each in ended[:room]), *left]
    known = len(found) + len(stuck) + len(facts.attention)
    total = len(open_) + len(ended) + len(left)
    return Inbox(shown[:limit], max(0, total - limit), known - total)


def named(items: Iterable[Item], name: str) -> Item:
    """The item with this id, or the only one whose id ends or begins so.

    Raises:
        NotFound: there is none. Refused: it could be several.
    """
    items = list(items)
    exact = [each for each in items if each.id == name]
    found = exact or [
        each
        for each in items
        if len(name) >= SHORTEST
        and (each.id.endswith(name) or each.id.startswith(name))
    ]
    if not found:
        raise NotFound(f"nothing in the inbox is called {name!r}")
    if len(found) > 1:
        ids = ", ".join(each.id for each in found[:3])
        raise Refused(f"{name!r} could be any of {ids}, ...")
    return found[0]


def of_job(job: str) -> str:
    """The item of a job that ended so that a person has to look."""
    return f"job:{job}"


def _job(job: Json, logs: Callable[[str, int], str]) -> Item:
    error = job["error"] or {"code": "", "message": "its outcome is not known"}
    evidence = {"code": error["code"], "attempt": str(job["attempt"])}
    if job["attempt"]:
        evidence["log"] = logs(job["id"], job["attempt"])
    ended = {"exit code": job["exit_code"], "signal": job["signal"]}
    evidence |= {name: str(told) for name, told in ended.items() if told is not None}
    actions = [f"forge-actors logs {job['id']}", f"forge-actors show {job['id']}"]
    if (worktree := job["worktree"]) is not None and "path" in worktree:
        evidence |= {"worktree": worktree["path"], "branch": worktree["branch"]}
    if (agent := job["agent"]) is not None and agent.get("session"):
        evidence["session"] = agent["session"]
    return Item(
        id=of_job(job["id"]),
        kind="job",
        says=f"{_named(job)} ended, and a person has to look: {error['message']}",
        since=job["finished_at"],
        repo=job["repo"],
        job=job["id"],
        evidence=evidence,
        actions=[*actions, f"forge-actors retry {job['id']}", _dismiss(job["id"])],
    )


def _question(job: Json) -> Item:
    error = job["error"] or {"message": "it asks something"}
    worktree = job["worktree"] or {}
    evidence = {"attempt": str(job["attempt"])}
    if "path" in worktree:
        evidence["worktree"] = worktree["path"]
    return Item(
        id=f"question:{job['id']}:{job['attempt']}",
        kind="question",
        says=f"{_named(job)} asks: {error['message']}",
        since=job["queued_at"],
        repo=job["repo"],
        job=job["id"],
        evidence=evidence,
        actions=[
            f'forge-actors answer {job["id"]} "..."',
            f"forge-actors approve {job['id']}",
            f"forge-actors deny {job['id']}",
        ],
    )


def _held_back(job: Json) -> list[str]:
    """The effects that a job waits to be allowed."""
    held: list[str] = (job.get("effects") or {}).get("held_back", [])
    return held


def _approval(job: Json) -> Item:
    effects = job["effects"]
    held = _held_back(job)
    evidence = {
        "effects": ", ".join(held),
        "began": effects["began"] or "",
        "command": shown_command(job["argv"]),
    }
    if job["cwd"]:
        evidence["folder"] = job["cwd"]
    return Item(
        id=f"approval:{job['id']}",
        kind="approval",
        says=f"{_named(job)} waits to be allowed to {' and '.join(held)}:"
        f" {effects['began']} began it, and no person",
        since=job["queued_at"],
        repo=job["repo"],
        job=job["id"],
        evidence=evidence,
        actions=[
            f"forge-actors show {job['id']}",
            f"forge-actors approve {job['id']}",
            f"forge-actors deny {job['id']}",
        ],
    )


def _effect(job: Json, logs: Callable[[str, int], str]) -> Item:
    effects = job.get("effects") or {}
    told = effects.get("refused") or ["an earlier attempt (NAME)"]
    evidence = {"attempt": str(job["attempt"]), "began": effects.get("began") or ""}
    if job["attempt"]:
        evidence["log"] = logs(job["id"], job["attempt"])
    names = ",".join(dict.fromkeys(text.rpartition(" (")[2][:-1] for text in told))
    item = f"effect:{job['id']}:{job['attempt']}"
    return Item(
        id=item,
        kind="effect",
        says=f"{_named(job)} was kept from {', '.join(told)}: nobody has allowed it",
        since=job["finished_at"] or job["queued_at"],
        repo=job["repo"],
        job=job["id"],
        evidence=evidence,
        actions=[
            f"forge-actors logs {job['id']}",
            f"forge-actors retry {job['id']} --authorise {names}",
            f"forge-actors inbox dismiss {item}",
        ],
    )


def shown_command(argv: Sequence[str | dict[str, str]]) -> str:
    """A command in a line, without secrets."""
    words = (part if isinstance(part, str) else "(bytes)" for part in argv)
    return redact(bounded(" ".join(words), MAX_COMMAND))


def _provider(name: str, account: Json) -> Item:
    login = account["reason"] == "auth"
    why = "its program is not logged in" if login else "its budget is spent"
    evidence = {"provider": name, "reason": account["reason"]}
    told = {"job": account["job"], "said": account["detail"]}
    evidence |= {key: text for key, text in told.items() if text}
    item = f"provider:{name}:{account['since']}"
    return Item(
        id=item,
        kind="provider",
        says=f"provider {name} is closed, and none of its jobs starts: {why}",
        since=account["since"],
        repo=None,
        job=account["job"],
        evidence=evidence,
        actions=["forge-actors doctor", f"forge-actors resume --provider {name}"],
    )


def _aside(each: Json) -> Item:
    what = f"job {each['job']}" if each["job"] else "all of it"
    item = f"aside:{each['repo']}:{each['job'] or ''}:{each['since']}"
    return Item(
        id=item,
        kind="aside",
        says=f"repository {each['repo']}: {what} was set aside, as it made the"
        " service fail over and over",
        since=each["since"],
        repo=each["repo"],
        job=each["job"],
        evidence={"error": each["error"]},
        actions=[f"forge-actors repo enable {each['repo']}"],
    )


def _claims(left: Json) -> Item:
    job = left["job"]
    return Item(
        id=f"claims:{job}",
        kind="claims",
        says=f"claims are kept for what job {job} left, which is not proven gone",
        since=left["since"],
        repo=left["repo"],
        job=job,
        evidence={
            "claims": " ".join(left["claims"]),
            "processes": " ".join(map(str, left["pids"])),
            "reason": left["reason"],
        },
        actions=[
            f"forge-actors quarantine release {job}",
            f"forge-actors quarantine release {job} --yes",
        ],
    )


def _hook(hook: Json) -> Item:
    name = hook["name"]
    # Where it leads only the settings say.
    evidence = {"webhook": name} | ({"url": hook["url"]} if hook["url"] else {})
    return Item(
        id=f"webhook:{name}:{hook['since']}",
        kind="webhook",
        says=f"the webhook {name} is told nothing any more: {hook['detail']}",
        since=hook["since"],
        repo=None,
        job=None,
        evidence=evidence | {"behind": f"{hook['behind']} events"},
        actions=[
            f"forge-actors webhook test {name}",
            f"forge-actors webhook open {name}",
        ],
    )


def _worktree(tree: Json) -> Item:
    job = tree["id"]
    return Item(
        id=f"worktree:{job}",
        kind="worktree",
        says=f"the worktree of job {job} has to stay: {tree['reason']}",
        since=tree["made_at"],
        repo=tree["repo"],
        job=job,
        evidence={"worktree": tree["path"], "branch": tree["branch"]},
        actions=[
            f"forge-actors worktree keep {job}",
            f"forge-actors worktree remove {job}",
        ],
    )


def _named(job: Json) -> str:
    name = f" ({job['name']})" if job["name"] else ""
    return f"job {job['id']}{name}"


def _dismiss(job: str) -> str:
    return f"forge-actors inbox dismiss {of_job(job)}"
