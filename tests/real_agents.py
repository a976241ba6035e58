"""The real agent programs that `tox -e agents` installs, on a model service of ours.

They get dummy keys, and reach nothing but the loopback.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from forge_actors.testing.agents.model_api import ModelApi

BIN = os.environ.get("REAL_AGENTS_BIN")
KEY = "sk-dummy-4711"

#: Of every module that needs them.
MARKS = [
    pytest.mark.agents,
    pytest.mark.skipif(BIN is None, reason="NOT RUN: tox -e agents installs them"),
]


def variables(name: str, api: ModelApi) -> dict[str, str]:
    """What leads a program to the service."""
    match name:
        case "claude":
            return {
                "ANTHROPIC_BASE_URL": api.url,
                "ANTHROPIC_API_KEY": KEY,
                "CLAUDE_CODE_MAX_RETRIES": "0",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            }
        case "codex":
            return {"CODEX_API_KEY": KEY}
        case _:
            return {
                "COPILOT_PROVIDER_BASE_URL": f"{api.url}/v1",
                "COPILOT_PROVIDER_API_KEY": KEY,
                "COPILOT_MODEL": "m",
                "COPILOT_OFFLINE": "true",
            }


def arguments(name: str, api: ModelApi) -> tuple[str, ...]:
    """The same as arguments, for the one that has no variables for it."""
    if name != "codex":
        return ()
    stub = "model_providers.stub"
    settings = {
        "model_provider": "stub",
        f"{stub}.name": "stub",
        f"{stub}.base_url": f"{api.url}/v1",
        f"{stub}.wire_api": "responses",
        f"{stub}.env_key": "CODEX_API_KEY",
        f"{stub}.request_max_retries": "0",
        f"{stub}.stream_max_retries": "0",
    }
    options = [
        part for key, value in settings.items() for part in ("-c", f"{key}={value}")
    ]
    return ("--skip-git-repo-check", *options)
