"""What the mailboxes of the actors hold: whoever falls behind shows there first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.actors.supervisor_messages import MailCounts

if TYPE_CHECKING:
    from forge_actors.actors.aside import Aside
    from forge_actors.actors.clean_up import CleanUp
    from forge_actors.actors.mailbox import Mailbox
    from forge_actors.actors.supervisor_messages import Message, RepositoryMailbox


def mail_counts(
    own: Mailbox[Message],
    children: dict[str, RepositoryMailbox],
    aside: Aside,
    clean_up: CleanUp,
) -> MailCounts:
    """The counts of the supervisor and of those that it keeps."""
    depths = [child.depth for child in children.values()]
    return MailCounts(
        supervisor=own.depth,
        repositories=sum(depths),
        deepest=max(depths, default=0),
        repository_failures=aside.failures,
        clean_up=clean_up.depth,
        clean_up_failures=clean_up.failures,
    )
