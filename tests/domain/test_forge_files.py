"""What the files say that a repository brings along for its work."""

from __future__ import annotations

import pytest

from forge_actors.domain import forge_files
from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.forge_files import (
    ForgeFile,
    digest_of,
    own_templates,
    read_contents,
)

GOOD = """\
[[template]]
name = "test"
[template.parameters]
part = { default = "all", choices = ["all", "fast"] }
[template.job]
argv = ["make", "${part}"]
secrets = ["TOKEN"]

[[schedule]]
name = "nightly"
cron = "30 2 * * *"
until = 2030-01-01
[schedule.job]
argv = ["git", "push"]
secrets = ["KEY"]
effects = ["release"]
"""
WORKFLOW = """\
[workflow]
name = "ship"
[[step]]
name = "build"
job = { argv = ["make"], secrets = ["SIGN"], effects = ["publish"] }
"""


def files(**texts: str) -> list[ForgeFile]:
    return [ForgeFile(f"{name}.toml", text) for name, text in texts.items()]


def test_schedules_and_templates_stand_together_and_a_workflow_alone() -> None:
    contents = read_contents(files(a=GOOD, b=WORKFLOW))
    assert [template.name for template in contents.templates] == ["test"]
    [schedule] = contents.schedules
    assert schedule.where == ".forge/a.toml: schedule[0]"
    assert schedule.request.until == "2030-01-01"
    [workflow] = contents.workflows
    assert (workflow.name, workflow.text) == ("ship", WORKFLOW)
    assert contents.secrets == ("KEY", "SIGN", "TOKEN")
    assert contents.effects == ("push", "release", "publish")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = ", r"^\.forge/a\.toml: is no valid TOML"),
        ("x = 1" + "0" * 5000, r"a\.toml: is no valid TOML"),
        (f"x = {'[' * 5000}", "nested too deep|no valid TOML"),
        (f"schedule = {'[' * 150}{']' * 150}", r"a\.toml: schedule: is written"),
        ("[" + "a." * 40 + "a]", r"a\.toml: has a key of more than 32 dotted parts"),
        ('"a" . ' * 40 + "a = 1", "more than 32 dotted"),
        ("[[tempalte]]", r"\.forge/a\.toml: tempalte: is not known"),
        ("schedule = 3", r"schedule: is written \[\[schedule\]\]"),
        ("[[schedule]]\nname = 3", r"schedule\[0\]\.(name|job)"),
        (GOOD.replace("until", "untill"), r"schedule\[0\]\.untill: is not a known"),
        (
            GOOD.replace('name = "nightly"', 'name = "n"\nrepo = "."'),
            r"repo: cannot be",
        ),
        (GOOD.replace("effects", "authorised"), r"authorised: only a person can say"),
        (GOOD + 'stdin = "/etc/passwd"\n', r"schedule\[0\]\.job\.stdin: cannot be"),
        (GOOD + 'cwd = "../other"\n', r"schedule\[0\]\.job\.cwd: '\.\./other' is no"),
        (GOOD + GOOD, r"template\[1\]\.name: 'test' is there twice"),
        (WORKFLOW + GOOD, "workflow: has to have a file of its own"),
        (WORKFLOW.replace("effects", "authorised"), "authorised: only a person"),
        ("workflow = 3", r"workflow: is written \[workflow\]"),
        (GOOD.replace("[template.job]", '[template.job]\nstdin = "/x"'), "job.stdin"),
    ],
)
def test_what_is_wrong_is_named_by_its_file_and_its_field(text: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        read_contents(files(a=text))


@pytest.mark.parametrize("sign", ['"""', "'''"])
def test_dots_in_a_text_are_no_key(sign: str) -> None:
    for prompt in ("Wait" + "." * 100, "a.b" * 100, "\n" + "a . " * 100):
        text = GOOD.replace(
            'argv = ["git"', f'prompt = {sign}{prompt}{sign}\nargv = ["git"'
        )
        assert read_contents(files(a="# " + "a." * 100 + "\n" + text)).schedules


def test_what_is_slow_to_read_is_not_read() -> None:
    """Each line under a deep header is as slow as that is deep."""
    deep = "[" + ".".join("a" * 20_000) + "]\n"
    lines = "".join(f"b{number} = 1\n" for number in range(20_000))
    with pytest.raises(InvalidInput, match="dotted parts"):
        read_contents(files(a=deep + lines))


@pytest.mark.parametrize("part", ['"""', "'''", '"\\', '"""\\"', "'a", '"a\n'])
def test_unfinished_strings_take_no_longer_than_they_are(part: str) -> None:
    with pytest.raises(InvalidInput):
        read_contents(files(a="x = " + part * 50_000))


def test_a_name_is_there_once_in_all_files() -> None:
    for text in (GOOD, WORKFLOW):
        with pytest.raises(InvalidInput, match=r"b\.toml.*twice: see \.forge/a\.toml"):
            read_contents(files(b=text, a=text))


def test_there_are_only_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forge_files, "MAX_ENTRIES", 1)
    read_contents(files(a=GOOD))
    other = GOOD.replace('"test"', '"other"').replace('"nightly"', '"x"')
    with pytest.raises(InvalidInput, match="more than 1 templates"):
        read_contents(files(a=GOOD, b=other))


def test_a_digest_tells_names_contents_and_absence_apart() -> None:
    one = files(a="x = 1", b="y = 1")
    others = [
        files(a="x = 1"),
        files(a="x = 1", b="y = 2"),
        files(a="x = 1", c="y = 1"),
        files(b="x = 1", a="y = 1"),
        [],
    ]
    assert digest_of(one) == digest_of(one[::-1])
    assert len({digest_of(each) for each in [one, *others]}) == 1 + len(others)


def test_a_home_has_templates_of_its_own() -> None:
    text = GOOD.partition("[[schedule]]")[0]
    [template] = own_templates(text, "/h/templates.toml")
    assert template.name == "test"
    with pytest.raises(InvalidInput, match=r"^/h/templates\.toml: schedule: is not"):
        own_templates(GOOD, "/h/templates.toml")
    with pytest.raises(InvalidInput, match="twice"):
        own_templates(text + text, "/h/templates.toml")
