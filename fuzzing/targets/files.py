"""Files that people write: settings, jobs, schedules, workflows, templates, plans."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

from forge_actors.client.schedule_files import read_schedules
from forge_actors.client.workflow_files import read_workflow
from forge_actors.domain.epic.plan_file import (
    PlanFile,
    children_of,
    is_issue_file,
    read_folder,
    read_plan,
)
from forge_actors.domain.forge_files import (
    ForgeFile,
    digest_of,
    own_templates,
    read_contents,
)
from forge_actors.domain.repositories import Checkout, Repository
from forge_actors.domain.requests import convert
from forge_actors.domain.schedule_views import ScheduleRequest
from forge_actors.domain.toml import line_of, read_table
from forge_actors.domain.workflow_views import WorkflowRequest
from forge_actors.runtime.schedule_requests import definition_of, request_from
from forge_actors.runtime.settings import checked
from forge_actors.runtime.sources import load
from forge_actors.runtime.workflow_requests import Definer
from fuzzing import ROOT
from fuzzing.place import file_of
from fuzzing.target import Broken, Target, attempt, finished, same, text_of

if TYPE_CHECKING:
    from forge_actors.domain.requests import JobRequest

#: Sorts of TOML that are slow, deep or odd.
_ODD = (
    b"a" + b".a" * 400 + b" = 1",
    b"a = " + b"[" * 900,
    b"a = " + b"9" * 5000,
    b"a = 1e999\nb = nan\nc = 1979-05-27T07:32:00-08:00\nd = 07:32:00",
    b'a = "\\uD800"\n"\\u001b[2J" = 1\n',
)
_WORDS = (b" = ", b"[[", b"]]", b'"""', b"'''", b"\\u001b", b"1e999", b"[]", b"{}")


def tables(data: bytes) -> None:
    text = text_of(data)
    table = attempt(read_table, text, "plan.toml")
    if table is not None:
        same(repr(table), repr(tomllib.loads(text)), "as the library reads it")
        for key in list(table)[:8]:
            line_of(text, key)
            line_of(text, key, table="issue", index=1)


def settings(data: bytes) -> None:
    loaded = attempt(load, file_of("settings.toml", data), {})
    if loaded is not None:
        same(checked(loaded.settings), loaded.settings, "checked again")
        names = [view.name for view in loaded.views()]
        same(sorted(set(names)), sorted(names), "each setting once")


def job_files(data: bytes) -> None:
    # Only a process that fuzzes, or a test of it, pays for all of the runtime.
    from forge_actors.runtime.job_files import load_job_file

    attempt(load_job_file, file_of("jobs.toml", data))


def schedules(data: bytes) -> None:
    for table in attempt(read_schedules, str(file_of("schedules.toml", data))) or ():
        request = attempt(convert, table, ScheduleRequest)
        if request is None:
            continue
        definition = attempt(definition_of, request, "r1")
        if definition is None:
            continue
        told = request_from(definition, request.repo)
        again = attempt(convert, told, ScheduleRequest, where="again")
        made = None if again is None else attempt(definition_of, again, "r1")
        same(made, definition, f"told as {told!r} and read again")


_DEMO = Repository("r1", "demo", "/demo", "/demo/.git", 1, 2, 0.0)


async def _find(name: str) -> tuple[Repository, Checkout | None]:
    return _DEMO, None


def _check(job: JobRequest, repo: Repository, checkout: Checkout | None) -> None:
    """Every job can be submitted."""


def workflows(data: bytes) -> None:
    table = attempt(read_workflow, str(file_of("deploy.toml", data)))
    request = None if table is None else attempt(convert, table, WorkflowRequest)
    if request is not None:
        definer = Definer(request, _find, _check)
        attempt(lambda: finished(definer.define()))


def contents(data: bytes) -> None:
    texts = text_of(data).split("\f")[:4]
    files = [ForgeFile(f"{n}.toml", text) for n, text in enumerate(texts)]
    digest_of(files)
    found = attempt(read_contents, files)
    if found is not None:
        same(attempt(read_contents, files[::-1]), found, "in another order")
        _ = found.secrets, found.effects
        for template in found.templates:
            attempt(template.sample)
    attempt(own_templates, texts[0], "templates.toml")


def plans(data: bytes) -> None:
    texts = text_of(data).split("\f")[:4]
    plan = attempt(read_plan, PlanFile("plan.toml", texts[0]))
    names = ("epic.toml", "01-a.md", "2.toml", "3 x.md")
    files = [PlanFile(name, text) for name, text in zip(names, texts, strict=False)]
    if not all(is_issue_file(file.name) for file in files):
        raise Broken("a file that is read is none")
    for found in (plan, attempt(read_folder, files, "plan")):
        if found is not None:
            numbers = [child.at.number for child in children_of(found, "/plan")]
            same(numbers, [issue.number for issue in found.issues], "the issues")
            same(len(set(numbers)), len(numbers), "each number once")


def _examples(*patterns: str) -> tuple[bytes, ...]:
    """What is given to users as an example."""
    return tuple(
        path.read_bytes()
        for pattern in patterns
        for path in sorted((ROOT / "examples").rglob(pattern))
        if path.stat().st_size < 4096
    )


_SCHEDULE = b"""\
[[schedule]]
name = "nightly"
repo = "demo"
cron = "0 3 * * 1-5"
timezone = "Europe/Prague"
misfire = "all"
catch_up = "2h"
until = 2030-01-01T00:00:00
job = {argv = ["make", "check"], kind = "heavy-check", timeout = "30m"}
[[schedule]]
name = "issues"
repo = "."
on = "issues:label:bug"
every = "5m"
job = {agent = "claude", prompt = "${x}"}
"""
_WORKFLOW = b"""\
[workflow]
name = "deploy"
repo = "demo"
parameters = {where = "test"}
[[step]]
name = "build"
job = {argv = ["make", "${where}"], outputs = ["changed"], artifacts = ["dist/*"]}
[[step]]
name = "ask"
after = ["build"]
gate = "Deploy?"
if = 'build.changed == "yes"'
[[step]]
name = "ship"
after = ["ask", "build"]
inputs = ["build:dist/*"]
job = {argv = ["./ship", "${build.changed}"]}
"""
_FORGE = b"""\
[[template]]
name = "fix"
parameters.issue = {type = "integer", choices = [1, 2]}
job = {argv = ["make", "fix-${issue}"], secrets = ["KEY"], effects = ["push"]}
[[schedule]]
name = "nightly"
every = "1d"
job = {argv = ["git", "push"], cwd = "sub"}
\f[workflow]
name = "w"
[[step]]
name = "a"
job = {argv = ["true"], secrets = ["S"]}
"""
_PLAN = b"""\
title = "The importer"
[[issue]]
number = 1
title = "Parse"
[[issue]]
number = 2
title = "Load"
body = "..."
blocked_by = [1]
state = "closed"
reason = "not-planned"
"""
_FOLDER = b'title = "T"\n\f# One\n\ntext\n\f+++\nblocked_by = [1]\n+++\nx\f# Three #\n'
_SETTINGS = b"""\
[limits]
workers = 4
[providers.claude]
limit = 2
[[webhooks]]
name = "a"
url = "https://hooks.example/x"
[epic]
poll_interval = "30s"
phases.implement = {agent = "claude"}
[epic.phases.check]
argv = ["make", "check"]
"""
_JOBS = b"""\
[[repository]]
name = "a"
path = "."
[[job]]
repo = "a"
argv = ["true", {b64 = "/w=="}]
claims = ["write:path:x"]
[limits]
workers = 2
"""

TARGETS = (
    Target(
        "toml",
        "TOML is read as the library reads it, or refused in little time",
        tables,
        (*_ODD, _SETTINGS, _PLAN),
        _WORDS,
    ),
    Target(
        "settings",
        "settings are taken whole or refused whole, and each has one source",
        settings,
        (*_ODD, _SETTINGS, b"[limits]\nworkers = -1", b"[retention.logs]\nage=1"),
        (*_WORDS, b"[limits]", b"[providers.", b"[epic.phases.", b"workers", b"limit"),
    ),
    Target(
        "job-files",
        "a file of jobs is taken or refused with the place that is wrong",
        job_files,
        (*_ODD, _JOBS, *_examples("quickstart.toml")),
        (*_WORDS, b"[[job]]", b"[[repository]]", b"argv", b"claims", b"b64"),
    ),
    Target(
        "schedules",
        "a schedule is what it is told as",
        schedules,
        (*_ODD, _SCHEDULE, *_examples("*schedule*.toml")),
        (*_WORDS, b"[[schedule]]", b"every", b"cron", b"on", b"until", b"at", b"job."),
    ),
    Target(
        "workflows",
        "a workflow is defined or refused with the step that is wrong",
        workflows,
        (*_ODD, _WORKFLOW),
        (*_WORDS, b"[[step]]", b"${", b"after", b"if", b"inputs", b"gate", b"items"),
    ),
    Target(
        "forge-files",
        "what a repository brings along says the same in every order of its files",
        contents,
        (*_ODD, _FORGE),
        (*_WORDS, b"[[template]]", b"[[schedule]]", b"[workflow]", b"\f", b"secrets"),
    ),
    Target(
        "plans",
        "a plan has each issue once, from one file or from a folder",
        plans,
        (*_ODD, _PLAN, _FOLDER),
        (*_WORDS, b"[[issue]]", b"+++\n", b"\f", b"number", b"blocked_by", b"# "),
    ),
)
