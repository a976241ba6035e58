"""What others do while somebody trusts a repository, and what jobs may with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from msgspec import convert, structs

from forge_actors.actors.schedules_messages import Apply
from forge_actors.domain.errors import InvalidInput, NotFound, Refused
from forge_actors.domain.events import Event
from forge_actors.domain.requests import JobRequest
from forge_actors.domain.schedule_views import ScheduleRequest
from forge_actors.domain.templates import FromTemplate
from forge_actors.domain.trust import TrustedRun, TrustRequest
from forge_actors.domain.trust_changes import TrustSaved
from tests.runtime.kit import make_repository

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.domain.repositories import Repository
    from forge_actors.domain.trust import Found


from tests.runtime.trust_kit import FILE, kinds, trust, trusting

ONLY_TEMPLATES = """\
[[template]]
name = "push"
job = { argv = ["true"], effects = ["push"] }
"""
SHIP = """\
[workflow]
parameters = { to = "here" }
[[step]]
name = "push"
job = { argv = ["true", "${to}"], effects = ["push"] }
"""


async def test_of_two_who_trust_at_once_one_looks_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with trusting(tmp_path) as (runtime, file):
        control = runtime.control
        file.write_text(ONLY_TEMPLATES)
        request = TrustRequest((await control.trust("app")).digest)
        outcomes: list[str] = []
        found, there, both = control.trusts.found, [0], trio.Event()

        async def found_by_both(repo: Repository) -> Found:
            told = await found(repo)
            there[0] += 1
            if there[0] == 2:
                both.set()
            await both.wait()
            return told

        monkeypatch.setattr(control.trusts, "found", found_by_both)

        async def one() -> None:
            try:
                await control.trust_repository("app", request)
                outcomes.append("done")
            except Refused as error:
                outcomes.append(str(error))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(one)
            nursery.start_soon(one)
        done, refused = sorted(outcomes, key=len)
        assert done == "done"
        assert "somebody else has changed what is trusted of app" in refused
        assert (await kinds(control)).count("repository_trusted") == 1


async def test_what_was_edited_meanwhile_keeps_all_of_it_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with trusting(tmp_path) as (runtime, file):
        control = runtime.control
        await trust(control)
        file.write_text(FILE.replace('argv = ["true"]', 'argv = ["false"]'))
        ask = control.scheduling.ask

        async def edited_first(make: Any) -> Any:
            monkeypatch.setattr(control.scheduling, "ask", ask)
            if getattr(make, "func", None) is Apply:
                known = await control.schedule("app.nightly")
                edit = convert(known.definition, ScheduleRequest)
                await control.edit_schedule(structs.replace(edit, jitter="5s"))
            else:
                monkeypatch.setattr(control.scheduling, "ask", edited_first)
            return await ask(make)

        shown = await control.trust("app")
        monkeypatch.setattr(control.scheduling, "ask", edited_first)
        with pytest.raises(Refused, match=r"'app\.nightly' was changed meanwhile"):
            await control.trust_repository("app", TrustRequest(shown.digest))
        after = await control.trust("app")
        assert (after.state, after.trusted) == ("differs", shown.trusted)
        await trust(control)
        job = (await control.schedule("app.nightly")).definition["job"]
        assert job["argv"] == ["false"]


async def test_a_job_gives_a_template_no_more_than_it_may_do_itself(
    tmp_path: Path,
) -> None:
    async with trusting(tmp_path) as (runtime, file):
        control = runtime.control
        file.write_text(ONLY_TEMPLATES)
        await trust(control, ["push"])
        persons, automated = await control.submit(
            [
                JobRequest("app", ["true"]),
                JobRequest("app", ["true"], origin="schedule:x"),
            ]
        )
        wish = FromTemplate("app", origin=f"job:{persons.id}")
        accepted = await control.submit_template("push", wish)
        effects = (await control.job(accepted.id)).effects
        assert effects is not None
        assert (effects.began, effects.authorised) == ("template:push", ["push"])
        # Nobody could be asked here, so one that has to wait is refused.
        wish = FromTemplate("app", origin=f"job:{automated.id}")
        with pytest.raises(Refused, match="nobody has allowed push"):
            await control.submit_template("push", wish)


async def test_a_job_begins_no_workflow_that_may_do_more_than_it_may_itself(
    tmp_path: Path,
) -> None:
    async with trusting(tmp_path) as (runtime, file):
        control = runtime.control
        file.with_name("ship.toml").write_text(SHIP)
        await trust(control, ["push"])
        persons, automated = await control.submit(
            [
                JobRequest("app", ["true"]),
                JobRequest("app", ["true"], origin="schedule:x"),
            ]
        )
        ended = []
        for job in (persons.id, automated.id):
            begun = await control.run_trusted_workflow(
                "app", "ship", TrustedRun({"to": job}), origin=f"job:{job}"
            )
            assert begun.origin == f"job:{job}"
            ended.append(await control.wait_workflow(begun.id))
        assert [view.state for view in ended] == ["succeeded", "failed"]
        assert "nobody has allowed push" in str(ended[1].steps[0].why)


async def test_a_name_of_several_needs_its_repository(tmp_path: Path) -> None:
    async with trusting(tmp_path) as (runtime, _):
        control = runtime.control
        other = make_repository(tmp_path / "other")
        (other / ".forge").mkdir()
        (other / "src").mkdir()
        (other / ".forge" / "x.toml").write_text(FILE)
        await control.add_repository(str(other))
        shown = await control.trust("other")
        await control.trust_repository("other", TrustRequest(shown.digest))
        assert (await control.template("greet")).repo == "other"
        await trust(control)
        names = [each.name for each in await control.schedules()]
        assert names == ["app.nightly", "other.nightly"]
        with pytest.raises(InvalidInput, match="'greet' is one of app, other"):
            await control.template("greet")
        assert (await control.template("greet", "app")).repo == "app"
        with pytest.raises(NotFound, match="did you mean 'greet'"):
            await control.template("great", "app")


async def test_templates_make_jobs_of_a_batch(tmp_path: Path) -> None:
    async with trusting(tmp_path) as (runtime, file):
        control = runtime.control
        file.write_text(ONLY_TEMPLATES)
        await trust(control, ["push"])
        wish = FromTemplate("app", job={"after": ["first"]})
        made = await control.jobs_of_templates({1: ("push", wish), 3: ("push", wish)})
        assert [made[place].authorised for place in (1, 3)] == [["push"], ["push"]]
        jobs = [JobRequest("app", ["true"], name="first"), made[1], made[3]]
        ids = [each.id for each in await control.submit(jobs)]
        ended = await control.wait(ids)
        assert [job.state for job in ended] == ["succeeded"] * 3
        for bad, said in (
            (("push", FromTemplate("app", {"x": 1})), r"jobs\[3\]\.values\.x: is no"),
            (("posh", wish), r"jobs\[3\]: there is no template 'posh'"),
            (("push", FromTemplate("gone")), r"jobs\[3\]: repo: no repository"),
        ):
            with pytest.raises((InvalidInput, NotFound), match=said):
                await control.jobs_of_templates({1: ("push", wish), 3: bad})


async def test_what_cannot_be_read_of_it_is_taken_over_anew(tmp_path: Path) -> None:
    async with trusting(tmp_path) as (runtime, _):
        control = runtime.control
        await trust(control)
        repo = (await control.repository("app")).id
        event = Event("repository_trusted", 1.0, repo)
        await control._store.save([TrustSaved(repo, b"{nothing", event)]).wait()
        control.trusts.changed(repo, trusted=True)
        assert await control.templates() == []
        details = await control.repository("app")
        assert details.trust is not None
        assert details.trust.state == "untrusted"
        assert (await trust(control)).state == "trusted"
        assert [view.name for view in await control.templates()] == ["greet"]


async def test_files_from_before_a_trust_say_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with trusting(tmp_path) as (runtime, file):
        control = runtime.control
        await trust(control)
        found, begun, go_on = control.trusts.found, trio.Event(), trio.Event()

        async def late(repo: Repository) -> Found:
            monkeypatch.setattr(control.trusts, "found", found)
            told = await found(repo)
            begun.set()
            await go_on.wait()
            return told

        monkeypatch.setattr(control.trusts, "found", late)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(control.repository, "app")
            await begun.wait()
            file.write_text(ONLY_TEMPLATES)
            await trust(control)
            go_on.set()
        details = await control.repository("app")
        assert details.trust is not None
        assert details.trust.state == "trusted"
        assert "repository_trust_differs" not in await kinds(control)
