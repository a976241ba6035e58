"""What a person sees of retention and of the disk: settings, plans, sizes, refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import apsw
import pytest

from tests.acceptance.service import call

if TYPE_CHECKING:
    from tests.acceptance.service import LiveService

MIB = 1 << 20
PRINT = "head -c 1048576 /dev/zero"
DAY = 86_400.0


def set_retention(service: LiveService, text: str) -> None:
    path = service.home / "settings.toml"
    before = path.read_text().partition("[retention")[0]
    path.write_text(before + text)


def age_jobs(service: LiveService, seconds: float) -> None:
    """Let all jobs of a stopped service have ended so much earlier."""
    db = apsw.Connection(str(service.home / "store.sqlite"))
    db.execute("UPDATE job SET finished_at = finished_at - ?", (seconds,))
    db.close()


def restart(service: LiveService, *, aged: float) -> None:
    service.end()
    age_jobs(service, aged)
    service.start()


def logs(service: LiveService) -> set[str]:
    return {path.name.partition(".")[0] for path in (service.home / "logs").iterdir()}


def jobs_with_output(service: LiveService, count: int) -> list[str]:
    jobs = [service.bash("app", PRINT) for _ in range(count)]
    assert {job["state"] for job in service.wait(*jobs)} == {"succeeded"}
    return jobs


def test_old_jobs_go_with_their_output_and_say_so(service: LiveService) -> None:
    old = jobs_with_output(service, 3)
    restart(service, aged=40 * DAY)
    young = jobs_with_output(service, 2)
    planned = service.json("clean", "--dry-run")
    assert {each["what"] for each in planned["removals"]} >= {f"job {j}" for j in old}
    assert logs(service) == {*old, *young}
    done = service.cli("clean", status=0)
    assert "older than 30d" in done.out
    assert logs(service) == set(young)
    shown = service.cli("show", old[0], status=2)
    assert "was removed by retention" in shown.err
    assert [job["id"] for job in service.json("jobs", "--all")] == young[::-1]
    status = service.json("status")
    assert status["disk"]["home"]["classes"]["jobs"] >= 2 * MIB
    assert "jobs 2 MiB" in service.cli("status", status=0).out
    removed = (service.home / "removed.jsonl").read_text()
    assert all(f"job {job}" in removed for job in old)


def test_off_means_off(service: LiveService) -> None:
    jobs = jobs_with_output(service, 2)
    set_retention(service, '[retention]\nkeep = "all"\n')
    restart(service, aged=4000 * DAY)
    done = service.cli("clean", status=0)
    assert "0 removed" in done.err
    assert logs(service) == set(jobs)
    # A reload is enough to have it back.
    set_retention(service, '[retention.jobs]\ncount = 1\nage = "off"\n')
    service.cli("settings", "reload", status=0)
    service.cli("clean", status=0)
    assert logs(service) == {jobs[1]}


def test_a_setting_of_retention_is_shown_and_checked(service: LiveService) -> None:
    shown = service.cli("settings", "show", status=0).out
    assert "retention.jobs.age" in shown
    set_retention(service, '[retention.jobs]\nages = "2d"\n')
    refused = service.cli("settings", "check", status=2)
    assert (
        "retention.jobs.ages: is not a known field; did you mean 'age'" in refused.err
    )


def test_without_room_a_submit_says_what_to_do(service: LiveService) -> None:
    runs = service.bash("app", "sleep 600")
    service.until(runs, "job_running")
    path = service.home / "settings.toml"
    path.write_text(path.read_text() + '[disk]\nrefuse_free = "1024T"\n')
    service.cli("settings", "reload", status=0)
    refused = service.cli("submit", "--repo", "app", "--", "true", status=3)
    assert "no new job is taken until 1024 TiB are" in refused.err
    assert "forge-actors clean" in refused.err
    assert refused.err.count("\n") == 1
    assert "too little for new jobs" in service.cli("status", status=0).out
    doctor = service.cli("doctor", status=1).out
    assert "broken   disk" in doctor
    service.cli("cancel", runs, status=0)
    assert service.end_of(runs)["state"] == "cancelled"


def test_a_home_may_be_named_by_a_link(service: LiveService) -> None:
    """Its own path has none; a link in that one would have been put there since."""
    old = jobs_with_output(service, 1)
    service.end()
    age_jobs(service, 40 * DAY)
    link = service.root / "link"
    link.symlink_to(service.home)
    done = call("--home", link, "clean", status=0)
    assert f"job {old[0]}" in done.out
    assert logs(service) == set()


@pytest.mark.parametrize("served", [True, False])
def test_the_size_of_the_home_is_known_from_the_last_clean_up(
    service: LiveService, *, served: bool
) -> None:
    jobs_with_output(service, 1)
    (service.home / "films").mkdir()
    (service.home / "films" / "long.mkv").write_bytes(bytes(3 * MIB))
    service.cli("clean", status=0)
    if not served:
        service.end()
    status = service.cli("status", status=0 if served else 4).out
    home = next(line for line in status.splitlines() if line.startswith("  home"))
    assert "other 3" in home
    assert "jobs 1 MiB" in home
    assert "store" in home
    doctor = service.cli("doctor").out
    assert "other 3" in doctor or not served
