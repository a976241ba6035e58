"""What HTTP offers beside the verbs: tags, keys, pages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import trio
from msgspec import structs

from forge_actors.client.wire import ResponseReader
from forge_actors.domain.requests import JobEdit
from tests.edges.routes_kit import Api, open_api

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.domain.jobs import JobView


async def asked(
    api: Api, method: str, target: str, body: bytes = b"", **headers: str
) -> tuple[int | None, dict[str, str], bytes]:
    named = {"host": "localhost", "connection": "close", **headers}
    named["content-length"] = str(len(body))
    lines = [f"{name.replace('_', '-')}: {text}" for name, text in named.items()]
    head = "\r\n".join([f"{method} /v1{target} HTTP/1.1", *lines, "", ""])
    async with await trio.open_unix_socket(api.path) as stream:
        await stream.send_all(head.encode() + body)
        reader, answer = ResponseReader(), b""
        while not reader.complete:
            data = await stream.receive_some()
            assert data, "it broke off"
            answer += reader.feed(data)
    return reader.status, reader.headers, answer


# Tags


@pytest.mark.parametrize("plain", [True, False])
async def test_what_a_client_has_is_not_sent_again(tmp_path: Path, plain: bool) -> None:
    # One header twice is nothing that is read without h11.
    more = {} if plain else {"accept": "a", "Accept": "b"}
    async with open_api(tmp_path) as api:
        job = await api.submit()
        for target in (f"/jobs/{job}", "/jobs", "/repositories", "/openapi.json"):
            status, headers, body = await asked(api, "GET", target, **more)
            assert (status, bool(body)) == (200, True)
            tag = headers["etag"]
            strong = tag.removeprefix("W/")
            for known in (tag, f'"x", W/{strong}', "*"):
                again = await asked(api, "GET", target, if_none_match=known, **more)
                assert (again[0], again[2]) == (304, b"")
                assert again[1]["etag"] == tag
                assert "content-length" not in again[1]
            other = await asked(api, "GET", target, if_none_match='"x"', **more)
            assert other[2] == body
        await api.submit()
        changed = await asked(api, "GET", "/jobs", if_none_match=tag)
        assert changed[0] == 200


async def test_a_status_that_is_only_older_is_not_sent_again(tmp_path: Path) -> None:
    """The view says how old the look at a checkout is, which is never the same."""
    async with open_api(tmp_path) as api:
        await api("POST", "/repositories", {"path": "/src/app"})
        view = api.control.repos["app"]

        def looked(**fields: Any) -> None:
            status = structs.replace(view.status, **fields)
            api.control.repos["app"] = structs.replace(view, status=status)

        for target in ("/repositories", "/repositories/app"):
            looked(branch="main", age_ms=10)
            status, headers, _ = await asked(api, "GET", target)
            assert (status, headers["etag"][:3]) == (200, 'W/"')
            tag = headers["etag"]
            looked(branch="main", age_ms=4711)
            again = await asked(api, "GET", target, if_none_match=tag)
            assert (again[0], again[1]["etag"]) == (304, tag)
            looked(branch="other", age_ms=10)
            assert (await asked(api, "GET", target, if_none_match=tag))[0] == 200


async def test_an_edit_of_what_has_changed_meanwhile_is_refused(
    tmp_path: Path,
) -> None:
    async with open_api(tmp_path) as api:
        job = await api.submit()
        _, headers, _ = await asked(api, "GET", f"/jobs/{job}")
        tag = headers["etag"]
        body = b'{"labels": ["a"]}'
        first = await asked(api, "POST", f"/jobs/{job}/edit", body, if_match=tag)
        assert first[0] == 200
        body = b'{"labels": ["b"]}'
        second = await asked(api, "POST", f"/jobs/{job}/edit", body, if_match=tag)
        assert (second[0], json.loads(second[2])["code"]) == (
            412,
            "PRECONDITION_FAILED",
        )
        assert (await api("GET", f"/jobs/{job}"))[1]["labels"] == ["a"]
        always = await asked(api, "POST", f"/jobs/{job}/edit", body, if_match="*")
        assert always[0] == 200


async def test_an_edit_of_what_changes_at_that_very_moment_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_api(tmp_path) as api:
        job = await api.submit()
        _, headers, _ = await asked(api, "GET", f"/jobs/{job}")
        edit = api.control.edit

        async def late(selector: str, wanted: JobEdit, **more: Any) -> JobView:
            await edit(selector, JobEdit(labels=["quick"]))
            return await edit(selector, wanted, **more)

        monkeypatch.setattr(api.control, "edit", late)
        target, body = f"/jobs/{job}/edit", b'{"labels": ["a"]}'
        answer = await asked(api, "POST", target, body, if_match=headers["etag"])
        assert answer[0] == 412
        assert (await api("GET", f"/jobs/{job}"))[1]["labels"] == ["quick"]
        assert (await asked(api, "POST", target, body, if_match="*"))[0] == 200


# Keys


def jobs(*names: str, **more: object) -> bytes:
    made = [{"repo": "app", "argv": ["make", name], **more} for name in names]
    return json.dumps({"jobs": made}).encode()


def lines(*names: str) -> bytes:
    made = [{"repo": "app", "argv": ["make", name]} for name in names]
    return b"\n".join(json.dumps(job).encode() for job in made)


@pytest.mark.parametrize(("target", "body"), [("/jobs", jobs), ("/batch", lines)])
async def test_jobs_with_a_key_are_made_once(
    tmp_path: Path, target: str, body: Any
) -> None:
    async with open_api(tmp_path) as api:

        async def submit(*names: str, key: str = "k-1") -> tuple[int | None, Any]:
            status, _, answer = await asked(
                api, "POST", target, body(*names), idempotency_key=key
            )
            return status, json.loads(answer)

        first, again = await submit("a", "b"), await submit("a", "b")
        assert first[0] == again[0] == 201
        ids = [job["id"] for job in first[1]["jobs"]]
        assert [job["id"] for job in again[1]["jobs"]] == ids
        assert [job["existing"] for job in again[1]["jobs"]] == [True, True]
        quoted = await submit("a", "b", key='"k-1"')
        assert [job["id"] for job in quoted[1]["jobs"]] == ids
        for names in (("a",), ("a", "b", "c")):
            status, problem = await submit(*names)
            assert (status, problem["code"]) == (409, "REFUSED")
            assert "another number of jobs" in problem["detail"]
        other = await submit("a", "b", key="k-2")
        assert not {job["id"] for job in other[1]["jobs"]} & set(ids)
        assert len(api.control.views) == 4


@pytest.mark.parametrize("key", ["", "a b", "ä", "k" * 129, '"k'])
async def test_a_key_that_is_none_is_refused(tmp_path: Path, key: str) -> None:
    async with open_api(tmp_path) as api:
        status, _, body = await asked(
            api, "POST", "/jobs", jobs("a"), idempotency_key=key
        )
        assert (status, json.loads(body)["field"]) == (400, "idempotency-key")
        assert not api.control.views


async def test_a_key_and_an_id_of_its_own_are_one_too_many(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        body = jobs("a", request_id="mine")
        status, _, answer = await asked(api, "POST", "/jobs", body, idempotency_key="k")
        assert (status, json.loads(answer)["field"]) == (400, "idempotency-key")


# Pages


async def test_jobs_come_a_page_at_a_time(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        made = [await api.submit() for _ in range(5)]
        seen: list[str] = []
        before: str | None = ""
        while before is not None:
            target = "/jobs?limit=2" + (f"&before={before}" if before else "")
            _, answer = await api("GET", target)
            assert len(answer["jobs"]) <= 2
            seen += [job["id"] for job in answer["jobs"]]
            before = answer["next"]
            await api.submit()  # what is new is on no later page
        assert seen == made[::-1]


async def test_repositories_come_a_page_at_a_time(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        for name in ("b", "d", "f"):
            await api("POST", "/repositories", {"path": f"/{name}", "name": name})
        _, whole = await api("GET", "/repositories")
        names = [repo["name"] for repo in whole["repositories"]]
        assert (names, whole["next"]) == (sorted(names), None)
        _, first = await api("GET", "/repositories?limit=2")
        assert [repo["name"] for repo in first["repositories"]] == names[:2]
        assert first["next"] == names[1]
        await api("POST", "/repositories", {"path": "/a0", "name": "a0"})
        await api("DELETE", f"/repositories/{names[1]}")
        _, rest = await api("GET", f"/repositories?limit=9&after={first['next']}")
        assert [repo["name"] for repo in rest["repositories"]] == names[2:]
        assert rest["next"] is None
