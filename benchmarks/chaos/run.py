"""One chaos run, from an empty folder to a report."""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from benchmarks.chaos import checks, times
from benchmarks.chaos.evidence import Evidence
from benchmarks.chaos.kills import EXTRAS, Killer, Target, make_targets
from benchmarks.chaos.plans import Place, Plan, make_plans, quick_plans
from benchmarks.chaos.processes import Manager, described, marked
from benchmarks.chaos.report import Report
from benchmarks.chaos.story import Story, read_story
from benchmarks.chaos.submitter import Submitter
from benchmarks.repositories import make_repositories
from forge_actors.client import sync
from forge_actors.domain.errors import ForgeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

#: `random`: mixed jobs, many kills. `outage`: quick jobs, one kill of the service in
#: the middle. `wreck`: the same, of service, agent and jobs.
Scenario = Literal["random", "outage", "wreck"]
SCENARIOS: tuple[Scenario, ...] = get_args(Scenario)

#: What may run at once: tokens of each kind.
LIMITS = {"workers": 8, "heavy_checks": 3, "provider:claude": 2}
SETTINGS = """\
[limits]
workers = 8
heavy_checks = 3
active_repositories = 20

[providers.claude]
limit = 2

[pressure]
min_free_memory_mb = 64
max_load_per_cpu = 10000.0
"""
#: Of all jobs, those that are submitted before the first kill.
FIRST_SHARE = 0.3
#: Of all jobs, those that have ended before the only kill.
FIRST_ENDED = 0.25
#: Of the kills, those that fall while a submission waits for its answer, which takes
#: about so long; and how long such a submission is waited for.
AIMED, ANSWER_SECONDS, AIM_SECONDS = 0.4, 0.01, 0.5
#: Longest time without any end of a job until what is left counts as stuck.
PATIENCE = 60.0
#: Kills of an agent that may find none, and are made again.
MORE_KILLS = 10
#: How long nobody is there in the scenarios with one kill: longer than their jobs.
OUTAGE_SECONDS = 1.0


@dataclass(frozen=True)
class Sizes:
    jobs: int = 1000
    kills: int = 50
    agent_kills: int = 10
    repositories: int = 5


@dataclass
class Chaos:
    """The parts of a run."""

    home: Path
    manager: Manager
    killer: Killer
    submitter: Submitter
    evidence: Evidence
    say: Callable[[str], None]
    began: float = field(default_factory=time.monotonic)


def run(
    folder: Path,
    sizes: Sizes,
    seed: int,
    scenario: Scenario,
    say: Callable[[str], None],
) -> Report:
    """Everything that was wrong is in the report."""
    chaos = _prepare(folder, sizes, seed, scenario, say)
    manager, evidence = chaos.manager, chaos.evidence
    try:
        manager.start()
        _register(chaos)
        chaos.submitter.start()
        if scenario == "random":
            _strike_often(chaos, sizes, random.Random(f"{seed} targets"))
        else:
            _strike_once(chaos, "all" if scenario == "wreck" else "service")
        chaos.submitter.allow(sizes.jobs)
        _until_all_ended(chaos)
        evidence.gather(chaos.home)
        evidence.wrong += manager.stop()
        evidence.wrong += [
            f"a process of a job is left: {described(pid)}"
            for pid in marked(chaos.home)
        ]
    finally:
        chaos.submitter.give_up()
        if chaos.submitter.is_alive():
            chaos.submitter.join()
        manager.clear()
    evidence.wrong += chaos.submitter.refusals
    evidence.wrong += manager.failed_starts
    return _report(chaos, seed, scenario, read_story(evidence))


def _prepare(
    folder: Path,
    sizes: Sizes,
    seed: int,
    scenario: Scenario,
    say: Callable[[str], None],
) -> Chaos:
    home = folder / "home"
    home.mkdir(mode=0o700)
    (home / "settings.toml").write_text(SETTINGS)
    paths = make_repositories(folder / "repositories", sizes.repositories)
    place = Place(folder, {path.name: path for path in paths})
    place.make()
    make: Callable[..., list[Plan]] = (
        make_plans if scenario == "random" else quick_plans
    )
    plans = make(random.Random(f"{seed} jobs"), sizes.jobs, list(place.repositories))
    manager = Manager(home, say)
    killer = Killer(manager, random.Random(f"{seed} kills"))
    submitter = Submitter(home, place, plans, random.Random(f"{seed} submissions"))
    evidence = Evidence(
        place,
        {plan.name: plan for plan in plans},
        submitter.ids,
        killer.blows,
        manager.starts,
        LIMITS,
    )
    return Chaos(home, manager, killer, submitter, evidence, say)


def _register(chaos: Chaos) -> None:
    service = sync.Service(str(chaos.home))
    for name, path in chaos.evidence.place.repositories.items():
        service.post("repositories", body={"path": str(path), "name": name})


def _strike_often(chaos: Chaos, sizes: Sizes, rng: random.Random) -> None:
    """Kill while jobs come in and run, until there were as many kills as wanted."""
    killer, manager = chaos.killer, chaos.manager
    targets = make_targets(rng, sizes.kills, sizes.agent_kills)
    first = int(sizes.jobs * FIRST_SHARE)
    for number, target in enumerate(targets):
        share = first + round((sizes.jobs - first) * (number + 1) / len(targets))
        aimed = target != "starting" and rng.random() < AIMED
        if not aimed:
            chaos.submitter.allow(share)
        killer.pause()
        manager.look()
        chaos.evidence.look(chaos.home)
        if aimed:
            chaos.submitter.allow(share)
            chaos.submitter.sending.wait(AIM_SECONDS)
            time.sleep(rng.uniform(0.0, ANSWER_SECONDS))
        blow = killer.strike(target)
        chaos.say(f"{blow}; {len(chaos.submitter.ids)} accepted")
    for _ in range(MORE_KILLS):
        if sum(blow.agent is not None for blow in killer.blows) >= sizes.agent_kills:
            return
        killer.pause()
        manager.look()
        chaos.say(f"{killer.strike('both')}; one more for one that met no agent")


def _until_all_ended(chaos: Chaos) -> None:
    """Wait until every job has ended, or none ends any more."""
    plans = chaos.evidence.plans
    service = sync.Service(str(chaos.home))
    last, moment = -1, time.monotonic()
    while time.monotonic() < moment + PATIENCE:
        chaos.manager.look()
        chaos.submitter.join(1.0)
        ids = list(chaos.submitter.ids.values())
        if not ids:
            continue
        try:
            answer = service.post("wait", body={"jobs": ids, "timeout": 1})
        except ForgeError as error:
            chaos.say(f"waiting failed: {error}")
            continue
        if not answer["timed_out"] and len(ids) == len(plans):
            return
        ended = sum(view["finished_at"] is not None for view in answer["jobs"])
        if ended > last:
            last, moment = ended, time.monotonic()
    chaos.evidence.wrong.append(f"no job ended within {PATIENCE:.0f} s")


def _strike_once(chaos: Chaos, target: Target) -> None:
    """Kill when a part of the jobs has ended, and leave the others alone for a while.

    They all begin together, so that some surely run then.
    """
    service = sync.Service(str(chaos.home))
    service.post("pause", body={"scope": "all"})
    chaos.submitter.allow(len(chaos.evidence.plans))
    chaos.submitter.join()
    service.post("resume", body={"scope": "all"})
    first = round(len(chaos.evidence.plans) * FIRST_ENDED)
    ids = list(chaos.submitter.ids.values())[:first]
    service.post("wait", body={"jobs": ids, "timeout": PATIENCE})
    chaos.evidence.look(chaos.home)
    blow = chaos.killer.strike(target, outage=OUTAGE_SECONDS)
    if target == "all" and blow.agent is None:
        chaos.evidence.wrong.append("there was no agent to kill")
    chaos.say(str(blow))


def _finished_alone(evidence: Evidence) -> Iterator[str]:
    """What ran when the service was killed ended before there was another one."""
    for blow in evidence.blows:
        [start] = [one for one in evidence.starts if one.ready == blow.ready]
        assert blow.service is not None
        for name, found in evidence.runs.items():
            for run in found:
                over = run.ended is not None and run.ended < start.began
                if run.began < blow.service and not over:
                    yield f"{name}, attempt {run.attempt} did not go on to its end"


def _ended_alone(evidence: Evidence) -> int:
    """How many runs ended while no service was there."""
    outages = []
    for blow in evidence.blows:
        if blow.service is not None:
            ready = (one.ready for one in evidence.starts if one.ready > blow.service)
            outages.append((blow.service, min(ready, default=blow.service)))
    return sum(
        run.ended is not None and any(a < run.ended < b for a, b in outages)
        for found in evidence.runs.values()
        for run in found
    )


def _report(chaos: Chaos, seed: int, scenario: Scenario, story: Story) -> Report:
    evidence, submitter = chaos.evidence, chaos.submitter
    decided = times.decisions(evidence, story)
    violations = [*checks.violations(evidence, story), *times.late(decided)]
    if scenario == "outage":
        violations += _finished_alone(evidence)
    found = [run for runs in evidence.runs.values() for run in runs]
    return Report(
        scenario,
        seed,
        time.monotonic() - chaos.began,
        len(evidence.plans),
        states=Counter(view["state"] for view in evidence.views.values()),
        codes=Counter(told.code for told in story.jobs.values() if told.code),
        kills=Counter(one.target for one in evidence.blows if one.target not in EXTRAS),
        extras=Counter(one.target for one in evidence.blows if one.target in EXTRAS),
        agent_kills=sum(blow.agent is not None for blow in evidence.blows),
        killed_processes=sum(len(blow.victims) for blow in evidence.blows),
        begun=len(found),
        interrupted=sum(run.ended is None for run in found),
        repeated=submitter.repeated,
        existing=submitter.existing,
        gave_up=chaos.manager.gave_up,
        most=evidence.most,
        limits=dict(LIMITS),
        ended_alone=_ended_alone(evidence),
        unknown=times.spread(times.unknown_ends(evidence, story)),
        ready=times.spread([one.seconds for one in evidence.starts[1:]]),
        decided={
            target: (
                times.spread(
                    [o.since_ready for o in decided if o.blow.target == target]
                ),
                times.spread(
                    [o.since_start for o in decided if o.blow.target == target]
                ),
            )
            for target in dict.fromkeys(one.blow.target for one in decided)
        },
        violations=violations,
    )
