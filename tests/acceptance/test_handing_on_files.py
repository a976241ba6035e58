"""A chain of two jobs of a real service: values and files go from one to the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.acceptance.bench import contents

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.acceptance.service import LiveService

SECRET = b"a-value-that-nobody-else-has"


def holding(folder: Path, content: bytes) -> list[str]:
    """The files below a folder that have this in them."""
    return [
        str(path.relative_to(folder))
        for path, held in contents(folder)
        if content in held
    ]


def test_values_and_files_reach_the_next_job_whoever_is_killed_meanwhile(
    make_service: Callable[[str], LiveService],
) -> None:
    service = make_service("")
    service.start()
    service.add("app")
    service.cli("secret", "set", "TOKEN", stdin=SECRET, status=0)
    gate, bell = service.gate(), service.bell()
    makes = (
        f"{bell.ring}; {gate.wait}; mkdir dist; echo made > dist/out;"
        ' printf "VERSION=1.2\\nKEY=$TOKEN\\nMORE=x" > "$FORGE_OUTPUT"'
    )
    build = service.bash(
        "app",
        makes,
        *("--output=VERSION", "--output=KEY", "--artifact=dist", "--name=build"),
        *("--secret=TOKEN", f"--after-job={bell.ring}"),
    )
    later, ready = service.gate(), service.bell()
    takes = f'{ready.ring}; {later.wait}; cat "$FORGE_INPUTS/build/dist/out"'
    use = service.bash("app", takes, f"--input={build}:dist/*")
    # The first one ends while no service is there.
    bell.wait()
    service.kill()
    gate.open()
    bell.wait()
    service.start()
    # And so does the service while the second one has its inputs.
    ready.wait()
    assert service.show(use)["inputs"] == [f"{build}:dist/*"]
    assert [path.name for path in (service.home / "inputs").iterdir()] == [f"{use}.1"]
    service.kill()
    service.start()
    later.open()
    ends = service.wait(build, use)
    assert [end["state"] for end in ends] == ["succeeded", "succeeded"]
    assert ends[1]["after"] == [build]
    assert service.log(use) == b"made\n"
    shown = service.show(build)
    assert shown["outputs"] == {"VERSION": "1.2", "KEY": "[redacted]"}
    assert shown["outputs_problem"] == "MORE was not declared"
    assert list((service.home / "inputs").iterdir()) == []
    assert holding(service.home, SECRET) == ["secrets/TOKEN"]
    refused = service.cli("submit", "--repo", "app", f"--input={use}", "--", "true")
    assert refused.status == 2
    assert f"job {use} keeps no files: submit it with --artifact" in refused.err
    service.end()
    # Whoever reads the home without a service sees the same.
    assert service.show(build) == shown
