"""The accounts of providers as people read them."""

from __future__ import annotations

from typing import Any

from forge_actors.cli.text import clean

_WORDS = {
    "usage": "its account is used up",
    "rate": "too many requests",
    "overload": "its service is overloaded",
    "auth": "not logged in",
    "budget": "its budget is spent",
}


def shown_providers(providers: dict[str, Any]) -> dict[str, Any]:
    """Each provider without why it is closed, which has lines of its own."""
    return {
        name: {key: inner for key, inner in value.items() if key != "closed"}
        for name, value in providers.items()
    }


def closed_lines(providers: dict[str, Any]) -> list[str]:
    """A line for each closed one: until when, why, and what can be done."""
    lines = [
        clean(f"  {_line(name, value['closed'])}")
        for name, value in providers.items()
        if value.get("closed")
    ]
    return ["closed", *lines] if lines else []


def spent_lines(budgets: list[dict[str, Any]]) -> list[str]:
    """A line for each budget of the day that is spent, and what can be done."""
    lines = [
        clean(
            f"  {each['detail']}, until {each['until']};"
            f" forge-actors settings reload takes over a larger one"
        )
        for each in budgets
    ]
    return ["budgets", *lines] if lines else []


def _line(name: str, closed: dict[str, Any]) -> str:
    until = closed["until"]
    if until is None:
        end = f"until forge-actors resume --provider {name}"
    else:
        end = f"until {until}" if closed["stated"] else f"one job tries at {until}"
    why = _WORDS.get(closed["reason"], closed["reason"])
    said = f" ({closed['detail']})" if closed["detail"] else ""
    found = f", found by job {closed['job']}" if closed["job"] else ""
    return f"{name}  {end}: {why}{said}, since {closed['since']}{found}"
