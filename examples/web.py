"""A web application on trio that runs jobs: the runtime lives as long as it does.

    pip install 'forge-actors[gateway]' hypercorn
    hypercorn --worker-class trio --bind 127.0.0.1:8000 web:app

    curl -X POST 127.0.0.1:8000/jobs -d '{"repo": "/srv/app", "argv": ["make"]}'
    curl 127.0.0.1:8000/jobs/ID
    curl 127.0.0.1:8000/jobs/ID/output

When the server stops, so does every job; with a `home` what waited goes on next time.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from forge_actors import ForgeError, InvalidInput, NotFound, Runtime, open_runtime

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.requests import Request
    from starlette.responses import Response


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncGenerator[dict[str, Runtime], None]:
    async with open_runtime(settings={"limits": {"workers": 4}}) as runtime:
        yield {"runtime": runtime}


async def submit(request: Request) -> Response:
    wanted = await request.json()
    runtime: Runtime = request.state.runtime
    job = await runtime.submit(Path(wanted["repo"]), wanted["argv"])
    return JSONResponse({"id": job.id}, status_code=201)


async def show(request: Request) -> Response:
    job = await request.state.runtime.job(request.path_params["id"])
    view = await job.show()
    return JSONResponse({"id": job.id, "state": view.state, "exit": view.exit_code})


async def output(request: Request) -> Response:
    """Line by line while the job runs, until it has ended."""
    job = await request.state.runtime.job(request.path_params["id"])
    return StreamingResponse(job.output(), media_type="text/plain")


async def refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, ForgeError)
    status = {NotFound: 404, InvalidInput: 400}.get(type(error), 409)
    told = {"code": error.code, "error": str(error)}
    return JSONResponse(told, status_code=status)


app = Starlette(
    routes=[
        Route("/jobs", submit, methods=["POST"]),
        Route("/jobs/{id}", show),
        Route("/jobs/{id}/output", output),
    ],
    lifespan=lifespan,
    exception_handlers={ForgeError: refuse},
)
