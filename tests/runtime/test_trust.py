"""Trust: what a repository brings along is done once a person has taken it over."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.errors import InvalidInput, NotFound, Refused
from forge_actors.domain.templates import FromTemplate
from forge_actors.domain.trust import TrustedRun, TrustRequest
from tests.runtime.test_schedule_places import ran

if TYPE_CHECKING:
    from pathlib import Path


from tests.runtime.trust_kit import FILE, kinds, next_difference, trust, trusting


async def test_nothing_happens_until_somebody_trusts_it_and_then_all_of_it(
    tmp_path: Path,
) -> None:
    async with trusting(tmp_path) as (runtime, _):
        control = runtime.control
        shown = await control.trust("app")
        assert (shown.state, shown.trusted, shown.problem) == ("untrusted", None, None)
        assert [(each.name, each.change) for each in shown.files] == [
            ("work.toml", "new")
        ]
        [planned] = shown.schedules
        assert (planned.name, planned.change) == ("app.nightly", "added")
        assert shown.effects == ["push"]
        assert await control.schedules() == []
        wish = FromTemplate("app", {"who": "you"})
        with pytest.raises(NotFound, match=r"no template 'greet' here.*trusted first"):
            await control.submit_template("greet", wish)
        assert await kinds(control) == []

        done = await trust(control, ["push"])
        assert (done.state, done.trusted) == ("trusted", shown.digest)
        assert await kinds(control) == ["repository_trusted", "schedule_added"]
        schedule = await control.schedule("app.nightly")
        assert (schedule.repo, schedule.source) == ("app", "trust:app")
        assert schedule.definition["job"]["authorised"] == ["push"]
        job = await ran(runtime, "app.nightly")
        assert (job.state, job.origin) == ("succeeded", "schedule:app.nightly")

        accepted = await control.submit_template("greet", wish)
        [job] = await control.wait([accepted.id])
        assert (job.state, job.origin) == ("succeeded", "template:greet")
        assert job.cwd is not None
        assert job.cwd.endswith("/app/src")
        assert job.argv[-2:] == ["you", "false"]
        assert job.effects is not None
        assert job.effects.began == "template:greet"


async def test_a_file_that_changes_changes_nothing_until_it_is_trusted_again(
    tmp_path: Path,
) -> None:
    async with trusting(tmp_path) as (runtime, file):
        control = runtime.control
        await trust(control)
        file.write_text(FILE.replace("$1 $2", "gotcha").replace("nightly", "daily"))
        shown = await control.trust("app")
        assert shown.state == "differs"
        [changed] = shown.files
        assert (changed.change, changed.before) == ("changed", FILE)
        assert {(each.name, each.change) for each in shown.schedules} == {
            ("app.daily", "added"),
            ("app.nightly", "removed"),
        }
        wish = FromTemplate("app", {"who": "you"})
        accepted = await control.submit_template("greet", wish)
        job = await control.job(accepted.id)
        assert "gotcha" not in str(job.argv)
        assert [each.name for each in await control.schedules()] == ["app.nightly"]

        # What is said of it, wherever somebody may look.
        events = runtime.events()
        details = await control.repository("app")
        assert await next_difference(events)
        assert details.trust is not None
        assert details.trust.state == "differs"
        assert "work.toml" in details.trust.says
        [item] = (await control.inbox()).items
        assert (item.kind, item.repo) == ("trust", "app")
        assert "forge-actors repo trust app --show" in item.actions

        await trust(control)
        assert (await control.inbox()).items == []
        accepted = await control.submit_template("greet", wish)
        assert "gotcha" in str((await control.job(accepted.id)).argv)
        assert [each.name for each in await control.schedules()] == ["app.daily"]
        assert (await kinds(control))[2:] == [
            "repository_trust_differs",
            "repository_trusted",
            "schedule_removed",
            "schedule_added",
        ]


async def test_only_what_was_shown_is_taken_over(tmp_path: Path) -> None:
    async with trusting(tmp_path) as (runtime, file):
        control = runtime.control
        shown = await control.trust("app")
        file.write_text(FILE + "# and more\n")
        with pytest.raises(Refused, match="has changed since it was shown"):
            await control.trust_repository("app", TrustRequest(shown.digest))
        assert (await control.trust("app")).trusted is None


WRONG = (
    (("manual = true", 'cron = "61 * * * *"'), r"work\.toml: schedule\[0\]\.cron"),
    (('"true"]', '"true"]\nkind = "x"'), r"work\.toml: schedule\[0\]\.job\.kind"),
    (('cwd = "src"', 'cwd = "gone"'), r"template 'greet'\.job\.cwd: 'gone' is no"),
    (('cwd = "src"', 'priority = "P9"'), r"'greet'\.job\.priority: 'P9'"),
    (('argv = ["true"]', 'argv = ["true"]\nsecrets=["T"]'), "schedule.*secret"),
)


async def test_one_error_keeps_all_of_it_out(tmp_path: Path) -> None:
    async with trusting(tmp_path) as (runtime, file):
        control = runtime.control
        await trust(control)
        before = await kinds(control)
        for change, said in WRONG:
            file.write_text(FILE.replace(*change))
            assert (await control.trust("app")).problem is not None
            with pytest.raises((InvalidInput, Refused), match=said):
                await trust(control, secrets=["T"] if "secrets" in change[1] else [])
        told = [kind for kind in await kinds(control) if not kind.endswith("differs")]
        assert told == before
        assert [each.name for each in await control.schedules()] == ["app.nightly"]


async def test_a_secret_is_given_only_if_somebody_allows_it(tmp_path: Path) -> None:
    async with trusting(tmp_path) as (runtime, file):
        control = runtime.control
        folder = runtime.home / "secrets"
        folder.mkdir(mode=0o700, exist_ok=True)
        (folder / "TOKEN").write_text("abcdefgh")
        (folder / "TOKEN").chmod(0o600)
        file.write_text(FILE.replace('cwd = "src"', 'secrets = ["TOKEN"]'))
        assert (await control.trust("app")).secrets == ["TOKEN"]
        with pytest.raises(Refused, match="--secret TOKEN"):
            await trust(control)
        with pytest.raises(InvalidInput, match=r"no job of it asks for .*'OTHER'"):
            await trust(control, secrets=["TOKEN", "OTHER"])
        await trust(control, secrets=["TOKEN"])
        wish = FromTemplate("app", {"who": "you"})
        accepted = await control.submit_template("greet", wish)
        [job] = await control.wait([accepted.id])
        assert job.state == "succeeded"


async def test_it_is_taken_back_and_goes_with_its_repository(tmp_path: Path) -> None:
    async with trusting(tmp_path) as (runtime, _):
        control = runtime.control
        with pytest.raises(Refused, match="nothing of app is trusted"):
            await control.distrust_repository("app")
        await trust(control)
        assert [view.name for view in await control.templates()] == ["greet"]
        gone = await control.distrust_repository("app")
        assert (gone.state, gone.trusted) == ("untrusted", None)
        assert await control.schedules() == []
        assert await control.templates() == []
        assert (await kinds(control))[-2:] == [
            "repository_untrusted",
            "schedule_removed",
        ]
        await trust(control)
        await control.remove_repository("app")
        assert await control.templates() == []
        assert await control.schedules() == []


async def test_what_a_person_says_beside_a_template_is_bounded(tmp_path: Path) -> None:
    async with trusting(tmp_path) as (runtime, _):
        control = runtime.control
        await trust(control)
        say = {"priority": "P1", "labels": ["x"], "request_id": "r1"}
        wish = FromTemplate("app", {"who": "you"}, say)
        first = await control.submit_template("greet", wish)
        again = await control.submit_template("greet", wish)
        assert (again.id, again.existing) == (first.id, True)
        job = await control.job(first.id)
        assert (job.priority, job.labels) == ("P1", ["x"])
        for field in ("argv", "env", "authorised", "cwd"):
            wish = FromTemplate("app", {"who": "you"}, {field: ["x"]})
            with pytest.raises(
                InvalidInput, match=f"job.{field}: is what the template"
            ):
                await control.submit_template("greet", wish)
        with pytest.raises(InvalidInput, match=r"values\.who: is missing"):
            await control.submit_template("greet", FromTemplate("app"))


async def test_a_home_has_templates_of_its_own_which_are_meant_first(
    tmp_path: Path,
) -> None:
    async with trusting(tmp_path) as (runtime, _):
        control = runtime.control
        await trust(control)
        own = '[[template]]\nname = "greet"\njob = { argv = ["true"] }\n'
        (runtime.home / "templates.toml").write_text(own)
        views = await control.templates("app")
        assert [(view.repo, view.hidden) for view in views] == [
            (None, False),
            ("app", True),
        ]
        assert (await control.template("greet")).job["argv"] == ["true"]
        accepted = await control.submit_template("greet", FromTemplate("app"))
        job = await control.job(accepted.id)
        # It is a person's, who asks for it: no other effects are held back.
        assert (job.origin, job.argv, job.effects) == ("cli", ["true"], None)
        file = runtime.home / "templates.toml"
        file.write_text(own.replace("greet", "other"))
        assert (await control.template("greet")).repo == "app"
        for text, said in ((b"\xff", "no UTF-8"), (b"x = 1", "x: is not known")):
            file.write_bytes(text)
            with pytest.raises(InvalidInput, match=said):
                await control.templates()


async def test_a_look_at_the_checkout_notices_what_differs(tmp_path: Path) -> None:
    async with trusting(tmp_path) as (runtime, file):
        control = runtime.control
        await trust(control)
        repo = (await control.repository("app")).id
        events = runtime.events()
        os.unlink(file)
        control.trusts.looked(repo)
        assert await next_difference(events)
        [item] = (await control.inbox()).items
        assert item.evidence["files"] == "work.toml"
        file.write_text(FILE)
        control.trusts.looked(repo)
        assert not await next_difference(events)
        assert (await control.inbox()).items == []


SHIP = """\
[workflow]
name = "ship"
parameters = { version = "1" }
[[step]]
name = "build"
job = { argv = ["echo", "${version}"] }
[[step]]
name = "push"
after = ["build"]
job = { argv = ["true"], effects = ["push"] }
"""


async def test_a_workflow_runs_as_it_was_taken_over(tmp_path: Path) -> None:
    async with trusting(tmp_path) as (runtime, file):
        control = runtime.control
        ship = file.with_name("ship.toml")
        ship.write_text(SHIP.replace('after = ["build"]', 'after = ["biuld"]'))
        problem = (await control.trust("app")).problem
        assert problem is not None
        assert problem.startswith(".forge/ship.toml: step[1].after")
        ship.write_text(SHIP)
        wanted = TrustedRun({"version": "2"}, request_id="r")
        with pytest.raises(NotFound, match="app has no trusted workflow 'ship'"):
            await control.run_trusted_workflow("app", "ship", wanted)
        done = await trust(control, ["push"])
        assert [(each.name, each.file) for each in done.workflows] == [
            ("ship", "ship.toml")
        ]
        ship.write_text(SHIP.replace("echo", "gotcha"))
        begun = await control.run_trusted_workflow("app", "ship", wanted)
        again = await control.run_trusted_workflow("app", "ship", wanted)
        assert (again.id, begun.source) == (begun.id, "trust:app/ship")
        ended = await control.wait_workflow(begun.id)
        assert ended.state == "succeeded"
        jobs = [await control.job(str(step.job)) for step in ended.steps]
        assert [job.argv for job in jobs] == [["echo", "2"], ["true"]]
        # Only the one that declares it may do what was authorised.
        assert [job.effects and job.effects.authorised for job in jobs] == [
            [],
            ["push"],
        ]
