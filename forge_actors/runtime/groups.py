"""Exception groups: a nursery wraps what a caller should see as it is."""

from __future__ import annotations

import trio

from forge_actors.domain.errors import StoreDamaged, WriterFenced


def only_failure(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The failure in a group that holds just one, besides what it cancelled."""
    _, failures = group.split(trio.Cancelled)
    if failures is None:
        return group
    # More than one Ctrl-C is still one.
    interrupts, _ = failures.split(KeyboardInterrupt)
    if interrupts is not None:
        return KeyboardInterrupt()
    # Whatever else fails once the home, or its store, is lost follows from that.
    lost, _ = failures.split((WriterFenced, StoreDamaged))
    inner: BaseException = failures if lost is None else _first(lost)
    while isinstance(inner, BaseExceptionGroup) and len(inner.exceptions) == 1:
        inner = inner.exceptions[0]
    return inner


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    inner: BaseException = group
    while isinstance(inner, BaseExceptionGroup):
        inner = inner.exceptions[0]
    return inner
