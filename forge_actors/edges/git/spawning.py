"""Starting a process from a thread, so that nothing else stands still meanwhile.

Who calls posix_spawn waits until the new program has been loaded, which takes a
fraction of a millisecond on a calm machine and many of them on a busy one. With
`os.posix_spawn` and `subprocess` the whole interpreter waits; a call through ctypes
lets the other threads go on.
"""

from __future__ import annotations

import ctypes
import os
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

#: Bytes for what the C library keeps in its types, more than any of them has.
_ROOM = 1024
# From <spawn.h>.
_SETSIGDEF, _SETSIGMASK, _SETSID = 0x04, 0x08, 0x80
#: All that can be ignored, and would be inherited as such.
_SIGNALS = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}

_libc = ctypes.CDLL(None)


def spawn(
    argv: Sequence[str], environment: Mapping[str, str], output: int, errors: int
) -> int:
    """Start a program found on the PATH as the first of a session; its pid.

    It reads nothing, writes to these two descriptors, and inherits no other, nor any
    signal that is blocked or ignored.

    Raises:
        OSError: it cannot be started.
    """
    actions, attributes = (ctypes.create_string_buffer(_ROOM) for _ in range(2))
    _check(_libc.posix_spawn_file_actions_init(actions))
    _check(_libc.posix_spawnattr_init(attributes))
    try:
        null = os.fsencode(os.devnull)
        add_open = _libc.posix_spawn_file_actions_addopen
        _check(add_open(actions, 0, null, os.O_RDONLY, 0))
        for theirs, number in ((output, 1), (errors, 2)):
            _check(_libc.posix_spawn_file_actions_adddup2(actions, theirs, number))
        flags = ctypes.c_short(_SETSIGDEF | _SETSIGMASK | _SETSID)
        _check(_libc.posix_spawnattr_setflags(attributes, flags))
        signals = ctypes.create_string_buffer(_ROOM)
        _libc.sigemptyset(signals)
        _check(_libc.posix_spawnattr_setsigmask(attributes, signals))
        for number in _SIGNALS:
            _libc.sigaddset(signals, number)
        _check(_libc.posix_spawnattr_setsigdefault(attributes, signals))
        words = _strings(map(os.fsencode, argv))
        values = _strings(
            os.fsencode(f"{name}={value}") for name, value in environment.items()
        )
        pid = ctypes.c_int()
        program = os.fsencode(argv[0])
        _check(
            _libc.posix_spawnp(
                ctypes.byref(pid), program, actions, attributes, words, values
            )
        )
        return pid.value
    finally:
        _libc.posix_spawnattr_destroy(attributes)
        _libc.posix_spawn_file_actions_destroy(actions)


def _strings(texts: Iterable[bytes]) -> ctypes.Array[ctypes.c_char_p]:
    values = [*texts, None]
    return (ctypes.c_char_p * len(values))(*values)


def _check(error: int) -> None:
    if error:
        raise OSError(error, os.strerror(error))
