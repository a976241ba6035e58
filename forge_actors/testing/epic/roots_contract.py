"""What every implementation of the port `Root` must keep to."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, ParamSpec

from forge_actors.domain.epic.errors import StateError
from forge_actors.domain.epic.ports import Entry

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.epic.places import Place
    from forge_actors.domain.epic.ports import Root

P = ParamSpec("P")

FILE: Place = ("a", "b", "file")


def _refused(act: Callable[P, object], *given: P.args, **named: P.kwargs) -> bool:
    try:
        act(*given, **named)
    except StateError:
        return True
    return False


def check_what_is_written_is_read(root: Root) -> None:
    assert root.read(FILE, 10) is None
    root.write(FILE, b"one")
    assert root.read(FILE, 10) == b"one"
    root.write(FILE, b"another")
    assert root.read(FILE, 10) == b"another"
    assert root.read(("a", "b", "none"), 10) is None
    root.write(("top",), b"")
    assert root.read(("top",), 0) == b""


def check_what_is_longer_than_the_limit_is_refused(root: Root) -> None:
    root.write(FILE, b"12345")
    assert root.read(FILE, 5) == b"12345"
    assert _refused(root.read, FILE, 4)


def check_a_file_is_created_once(root: Root) -> None:
    root.create(FILE, b"first")
    assert _refused(root.create, FILE, b"second")
    assert root.read(FILE, 10) == b"first"


def check_a_log_goes_on_until_its_limit(root: Root) -> None:
    for word in (b"one", b"two"):
        log = root.append(FILE, 6)
        os.write(log, word)
        os.close(log)
    assert root.read(FILE, 10) == b"onetwo"
    assert _refused(root.append, FILE, 6)
    os.close(root.append(FILE, 7))
    root.write(FILE, b"anew")
    assert root.read(FILE, 10) == b"anew"


def check_a_folder_is_listed_by_name(root: Root) -> None:
    assert root.entries(("a",)) is None
    assert root.entries(()) == []
    root.write(("a", "z"), b"")
    root.write(("a", "10"), b"")
    root.write(("a", "9", "x"), b"")
    found = [Entry("10", "file"), Entry("9", "folder"), Entry("z", "file")]
    assert root.entries(("a",)) == found
    assert root.entries(()) == [Entry("a", "folder")]
    assert root.remove(("a", "9", "x"))
    assert root.entries(("a", "9")) == []


def check_what_is_removed_is_gone(root: Root) -> None:
    assert not root.remove(FILE)
    root.write(FILE, b"one")
    assert root.remove(FILE)
    assert root.read(FILE, 10) is None
    assert not root.remove(FILE)
    os.close(root.append(FILE, 10))
    assert root.remove(FILE)
    assert root.read(FILE, 10) is None


def check_what_is_moved_has_another_name(root: Root) -> None:
    assert not root.move(FILE, "aside")
    root.write(FILE, b"one")
    assert root.move(FILE, "aside")
    assert root.read(FILE, 10) is None
    assert root.read((*FILE[:-1], "aside"), 10) == b"one"
    root.write(FILE, b"two")
    assert _refused(root.move, FILE, "aside")
    assert _refused(root.move, FILE, "../aside")
    assert root.read(FILE, 10) == b"two"
    assert root.read((*FILE[:-1], "aside"), 10) == b"one"
    assert root.move(FILE[:-1], "folder")
    assert root.read(("a", "folder", "aside"), 10) == b"one"


def check_a_folder_is_no_file_and_a_file_no_folder(root: Root) -> None:
    root.write(FILE, b"one")
    folder, below = FILE[:-1], (*FILE, "below")
    for place in (folder, below, ()):
        assert _refused(root.read, place, 10)
        assert _refused(root.write, place, b"")
        assert _refused(root.create, place, b"")
        assert _refused(root.append, place, 9)
        assert _refused(root.remove, place)
    assert _refused(root.entries, FILE)
    assert root.read(FILE, 10) == b"one"


def check_what_leads_elsewhere_is_no_place(root: Root) -> None:
    for name in ("", ".", "..", "a/b", "/", "/etc", "a\0b", "x" * 256, "\ud800"):
        for place in ((name,), ("a", name), (name, "a")):
            assert _refused(root.read, place, 10)
            assert _refused(root.write, place, b"")
            assert _refused(root.entries, place)
            assert _refused(root.remove, place)
    assert _refused(root.write, ("a",) * 17, b"")
    assert root.entries(()) == []


CHECKS = (
    check_what_is_written_is_read,
    check_what_is_longer_than_the_limit_is_refused,
    check_a_file_is_created_once,
    check_a_log_goes_on_until_its_limit,
    check_a_folder_is_listed_by_name,
    check_what_is_removed_is_gone,
    check_what_is_moved_has_another_name,
    check_a_folder_is_no_file_and_a_file_no_folder,
    check_what_leads_elsewhere_is_no_place,
)
