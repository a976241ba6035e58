"""A real service is asked whatever its OpenAPI document allows, and what it does not.

`tox -e schemathesis` runs these, in an environment of their own: all that only they
need takes longer to load than many other tests to run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from hypothesis import strategies as st

from tests.acceptance.tcp import SETTINGS, Tcp

pytest.importorskip("schemathesis", reason="tox -e schemathesis has it")

import schemathesis
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.acceptance.service import LiveService

#: Requests of each kind that an operation gets.
EXAMPLES = 6
#: Tests among which the operations are divided: each has its own service and its time.
PARTS = 4
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
#: What ends the service, a body of lines, for which there is no schema, and what takes
#: as long as there is something to clean up.
LEFT_OUT = {"post_stop", "post_batch", "post_clean"}
#: What waits until something happens elsewhere.
PATIENT = ("follow", "wait")
#: What would take away what the others are asked about.
GENTLE = {"delete_repositories_name"}


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_a_service_does_as_its_document_says(
    make_service: Callable[[str], LiveService], mode: GenerationMode, part: int
) -> None:
    service = make_service(f"{SETTINGS}tcp_requests = 100000\n")
    service.start()
    service.add("app")
    ended = service.bash("app", "echo out; echo err >&2; exit 3")
    service.end_of(ended)
    service.cli("pause", "--all", status=0)
    waiting = service.bash("app", "true")
    service.cli("hold", waiting, status=0)
    tcp = Tcp(service)
    schema = schemathesis.openapi.from_dict(tcp.ask("GET", "/v1/openapi.json").value)
    schema.config.update(base_url=tcp.endpoint)
    known = {
        "job": [ended, waiting],
        "name": ["app"],
        "stream": ["stdout", "both"],
        "action": ["hold"],
    }
    asked = set()
    operations = [found.ok() for found in schema.get_all_operations()]
    for operation in operations[part::PARTS]:
        name = operation.definition.raw["operationId"]
        if name in LEFT_OUT:
            continue
        _ask(operation, mode, {} if name in GENTLE else known, tcp)
        asked.add(name)
    assert len(asked) > 50 / PARTS
    status = service.json("status")
    assert (status["ready"], status["service"]["pid"]) == (True, service.pid)
    assert "Traceback" not in (service.home / "service.log").read_text()


def _ask(
    operation: Any, mode: GenerationMode, known: dict[str, list[str]], tcp: Tcp
) -> None:
    """Send requests of one operation, half of them about what is there."""

    @hypothesis.seed(7)
    @hypothesis.settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(case=operation.as_strategy(generation_mode=mode), data=st.data())
    def ask(case: Any, data: st.DataObject) -> None:
        for name, values in known.items():
            if name in (case.path_parameters or {}) and data.draw(st.booleans()):
                case.path_parameters[name] = data.draw(st.sampled_from(values))
        case.query = {
            name: value
            for name, value in (case.query or {}).items()
            if name not in PATIENT
        }
        if operation.path.endswith("/wait"):
            case.query["timeout"] = "0.01s"
        answer = case.call(headers=tcp.bearer, timeout=20)
        case.validate_response(answer, checks=CHECKS)

    try:
        ask()
    except hypothesis.errors.Unsatisfiable:
        # Nothing that is wrong can be sent where anything is right.
        assert mode is GenerationMode.NEGATIVE
