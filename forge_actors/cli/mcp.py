"""`mcp`: what an agent starts to use the service as tools; and how to register it.

It only carries messages between its own input and output and the socket of the service,
where everything else happens: so it starts at once, and there may be many.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from forge_actors.cli.delegation import parent_of
from forge_actors.cli.relay import Relay
from forge_actors.cli.verb import note
from forge_actors.client.home import resolve_home, socket_path
from forge_actors.client.sync import Service
from forge_actors.domain.errors import Refused

if TYPE_CHECKING:
    import argparse

HELP = "Serve an agent that starts this as an MCP server, through its input and output."
EXAMPLES = """\
  forge-actors mcp --print-config claude
  claude mcp add forge-actors -- forge-actors mcp
"""
SOCKET = "mcp.sock"
#: Seconds for a service that starts to be ready.
START_SECONDS = 20
PROGRAMS = ("claude", "codex", "copilot")
#: What says which job an agent is, for agents that do not hand on what they have.
VARIABLES = tuple(
    f"FORGE_{name}" for name in ("JOB_ID", "ATTEMPT", "FENCE", "CONTROLLER_HOME")
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--print-config",
        choices=PROGRAMS,
        metavar="claude|codex|copilot",
        help="print what registers this with a program, and where it belongs",
    )


def run(args: argparse.Namespace) -> int:
    home = resolve_home(args.home)
    if args.print_config is not None:
        print(_config(args.print_config, home), end="")
        return 0
    if sys.stdin.isatty():
        note("it serves an agent that starts it; --print-config shows how")
    Relay(partial(_introduced, home)).run()
    return 0


def _introduced(home: str) -> socket.socket:
    """A connection to the service that was told who we are."""
    connection = _connect(home)
    with suppress(OSError):  # whoever reads from it learns that it is gone
        connection.sendall(_introduction(home))
    return connection


def _connect(home: str) -> socket.socket:
    """A connection to the service, once it is ready.

    Raises:
        NoService: none runs. Refused: it serves no agents.
    """
    connection = _try(home)
    if connection is not None:
        return connection
    query = (("wait", "ready"), ("timeout", START_SECONDS))
    status = Service(home).get("status", query=query)
    connection = _try(home)
    if connection is not None:
        return connection
    told = status.get("mcp") or {}
    why = told.get("note", "it does not say why")
    raise Refused(f"the service on {home} serves no agents: {why}")


def _try(home: str) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(socket_path(home, SOCKET))
    except OSError:
        connection.close()
        return None
    except BaseException:
        connection.close()
        raise
    return connection


def _introduction(home: str) -> bytes:
    """The first line: where the agent works, and of which job it is a part."""
    told: dict[str, object] = {"parent": parent_of(home)}
    folder = os.getcwd()
    try:
        folder.encode()
    except UnicodeEncodeError:
        pass  # JSON cannot carry it; then an agent has to name its repository
    else:
        told["folder"] = folder
    return json.dumps({"forge_actors": told}).encode() + b"\n"


def _config(program: str, home: str) -> str:
    command = _command()
    if home != resolve_home(None):
        command += ["--home", home]
    name, first, rest = "forge-actors", command[0], command[1:]
    if program == "codex":
        words = ", ".join(map(json.dumps, rest))
        passed = ", ".join(map(json.dumps, VARIABLES))
        return (
            "# for ~/.codex/config.toml\n"
            f"[mcp_servers.{name}]\n"
            f"command = {json.dumps(first)}\n"
            f"args = [{words}]\n"
            f"env_vars = [{passed}]\n"
        )
    entry: dict[str, object] = {"command": first, "args": rest}
    if program == "copilot":
        entry = {"type": "local", **entry, "tools": ["*"]}
    snippet = json.dumps({"mcpServers": {name: entry}}, indent=2)
    places = {
        "claude": ".mcp.json in a repository, or: claude --mcp-config FILE",
        "copilot": "~/.copilot/mcp-config.json",
    }
    note(f"for {places[program]}")
    return f"{snippet}\n"


def _command() -> list[str]:
    """How this program is started, from anywhere."""
    called = os.path.abspath(sys.argv[0])
    if os.path.basename(called) == "forge-actors" and os.access(called, os.X_OK):
        return [called, "mcp"]
    return [sys.executable, "-m", "forge_actors", "mcp"]
