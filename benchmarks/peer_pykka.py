"""Pykka's tells and asks, run by the interpreter that has Pykka.

The one argument is a JSON list: how many messages, and how often.
"""

import importlib
import importlib.metadata
import json
import sys
import time
from typing import Any

pykka: Any = importlib.import_module("pykka")


class Echo(pykka.ThreadingActor):  # type: ignore[misc]
    def on_receive(self, message: int) -> int:
        return message


def tells(count: int) -> float:
    """Per second, until the last one was read."""
    actor = Echo.start()
    begin = time.perf_counter()
    for number in range(count - 1):
        actor.tell(number)
    actor.ask(count)
    seconds = time.perf_counter() - begin
    actor.stop()
    return count / seconds


def asks(count: int) -> float:
    """Per second of one asker, the next ask after the answer."""
    actor = Echo.start()
    begin = time.perf_counter()
    for number in range(count):
        if actor.ask(number) != number:
            raise AssertionError("an ask got the answer of another")
    seconds = time.perf_counter() - begin
    actor.stop()
    return count / seconds


def main() -> None:
    count, times = json.loads(sys.argv[1])
    result = {
        "version": importlib.metadata.version("pykka"),
        "tells": [tells(count) for _ in range(times)],
        "asks": [asks(count) for _ in range(times)],
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
