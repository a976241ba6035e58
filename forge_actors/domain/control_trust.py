"""Control, the part that is about trust and templates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from forge_actors.domain.control_schedules import Schedules

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forge_actors.domain.requests import Accepted, JobRequest
    from forge_actors.domain.templates import FromTemplate, TemplateView
    from forge_actors.domain.trust import TrustedRun, TrustRequest, TrustView
    from forge_actors.domain.workflow_views import WorkflowView


class TrustControl(Schedules, Protocol):
    """What a repository brings along, schedules too, and the templates of it and of the
    home."""

    async def trust(self, name: str) -> TrustView:
        """What would be taken over of a repository, and what was."""

    async def trust_repository(self, name: str, request: TrustRequest) -> TrustView:
        """Take over what is there, all of it or nothing. Only a person may ask.

        Raises:
            InvalidInput: naming the file and the field that is wrong.
            Refused: it is not what was shown, or a secret of it is not allowed.
        """

    async def distrust_repository(self, name: str) -> TrustView:
        """Take that back, with its templates and its schedules; their jobs stay.

        Raises:
            Refused: nothing of it is trusted.
        """

    async def run_trusted_workflow(
        self, repo: str, name: str, wanted: TrustedRun, *, origin: str = "cli"
    ) -> WorkflowView:
        """Begin a workflow that a repository brings along, as it was taken over.

        One that a job begins may do no more than that job: `origin` is who does."""

    async def templates(self, repo: str | None = None) -> list[TemplateView]:
        """Those of the home, and of one repository or all that are trusted."""

    async def template(self, name: str, repo: str | None = None) -> TemplateView:
        """The one with this name."""

    async def jobs_of_templates(
        self, wishes: Mapping[int, tuple[str, FromTemplate]]
    ) -> dict[int, JobRequest]:
        """The jobs of a batch that templates make of values, by their places; a wish
        is the name of a template and what is said to it.

        Raises:
            InvalidInput, NotFound: naming the place, as `jobs[3].`.
        """

    async def submit_template(self, name: str, wanted: FromTemplate) -> Accepted:
        """Accept the job that a template makes of values.

        Raises:
            InvalidInput: a value is missing or wrong.
        """
