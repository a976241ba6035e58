"""Routes: the files that were collected from jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from forge_actors.client.aio import connect
from forge_actors.testing.artifacts import FakeContent
from tests.edges.routes_kit import open_api

if TYPE_CHECKING:
    from pathlib import Path

STRANGE = "a folder/\u00fcml\u00e4ut %2F?&=#\n"


async def test_files_are_listed_and_sent(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        job = await api.submit()
        big = FakeContent("out/big", b"x" * 1_000_000)
        strange = FakeContent(STRANGE, b"strange")
        api.control.contents[job] = [big, strange, FakeContent("empty", b"")]
        status, answer = await api("GET", f"/jobs/{job}/artifacts?attempt=1")
        assert (status, answer["state"], answer["bytes"]) == (200, "complete", 1000007)
        assert [each["path"] for each in answer["files"]] == [
            STRANGE,
            "empty",
            "out/big",
        ]
        assert answer["files"][2]["sha256"] == big.file.sha256
        first = await api("GET", f"/jobs/{job}/artifacts?limit=2")
        assert first[1]["next"] == "empty"
        rest = await api("GET", f"/jobs/{job}/artifacts?limit=2&after=empty")
        assert [each["path"] for each in rest[1]["files"]] == ["out/big"]
        assert rest[1]["next"] is None
        # With the slashes of a path as they are, or escaped as one part.
        for path in ("out/big", "out%2Fbig"):
            found = await api.raw("GET", f"/jobs/{job}/artifacts/{path}")
            assert found == (200, big.data)
        assert await api.raw("GET", f"/jobs/{job}/artifacts/empty") == (200, b"")
        assert (await api.error("GET", f"/jobs/{job}/artifacts/no"))[0] == 404
        assert (await api.error("GET", f"/jobs/{job}/artifacts?attempt=0"))[0] == 400
        assert (await api.error("POST", f"/jobs/{job}/artifacts/out/big", {}))[0] == 405
        async with connect(tmp_path) as client:
            assert (await client.artifacts(job)).files[0].path == STRANGE
            async with client.artifact(job, STRANGE) as pieces:
                assert b"".join([piece async for piece in pieces]) == b"strange"


async def test_what_is_shorter_than_it_was_is_cut_off(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        job = await api.submit()
        content = FakeContent("file", b"x" * 100)
        content.data = b"x" * 50
        api.control.contents[job] = [content]
        async with await trio.open_unix_socket(api.path) as stream:
            request = (
                f"GET /v1/jobs/{job}/artifacts/file HTTP/1.1\r\nhost: localhost\r\n\r\n"
            )
            await stream.send_all(request.encode())
            answer = b""
            async for piece in stream:
                answer += piece
        # Nobody takes it for the whole: the end of the body never came.
        assert b"x" * 50 in answer
        assert not answer.endswith(b"0\r\n\r\n")
