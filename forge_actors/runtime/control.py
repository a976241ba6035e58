"""Control: everything a caller can ask of a runtime, answered by actors and store."""

from __future__ import annotations

from forge_actors.runtime.control_answers import AnswerControl
from forge_actors.runtime.control_artifacts import ArtifactControl
from forge_actors.runtime.control_cleaning import CleaningControl
from forge_actors.runtime.control_controllers import ControllersControl
from forge_actors.runtime.control_following import FollowingControl
from forge_actors.runtime.control_handing_on import HandingOnControl
from forge_actors.runtime.control_metrics import MetricsControl
from forge_actors.runtime.control_policies import PolicyControl
from forge_actors.runtime.control_repositories import RepositoryControl
from forge_actors.runtime.control_results import ResultControl
from forge_actors.runtime.control_service import ServiceControl
from forge_actors.runtime.control_steering import SteeringControl
from forge_actors.runtime.control_templates import TemplateControl
from forge_actors.runtime.control_timeline import TimelineControl
from forge_actors.runtime.control_trust import TrustControl
from forge_actors.runtime.control_usage import UsageControl


class RuntimeControl(
    AnswerControl,
    ResultControl,
    ArtifactControl,
    HandingOnControl,
    RepositoryControl,
    SteeringControl,
    FollowingControl,
    CleaningControl,
    UsageControl,
    ControllersControl,
    TrustControl,
    TemplateControl,
    PolicyControl,
    MetricsControl,
    TimelineControl,
    ServiceControl,
):
    """The port `Control` on one runtime, put together from its nouns."""
