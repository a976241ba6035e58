"""What every store keeps of what is trusted, as checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from msgspec import structs

from forge_actors.domain.changes import RepositoryChanged
from forge_actors.domain.events import Event
from forge_actors.domain.trust_changes import TrustDiffers, TrustRemoved, TrustSaved
from forge_actors.testing.made_changes import repository

if TYPE_CHECKING:
    from typing import Protocol

    from forge_actors.testing.store_contract import Open

    class _Keeper(Protocol):
        def trusted(self, repo: str) -> tuple[bytes, bytes | None] | None: ...

        def trusting(self) -> list[str]: ...


def _event(kind: str) -> Event:
    return Event(f"repository_{kind}", 1.0, "repo")


async def check_what_is_trusted_is_kept_as_it_was_last(open_: Open) -> None:
    async with open_() as store:
        keeper = cast("_Keeper", store)
        await store.save([repository()]).wait()
        # Of what nobody trusts nothing differs.
        await store.save([TrustDiffers("repo", b"x", None)]).wait()
        assert (keeper.trusted("repo"), keeper.trusting()) == (None, [])
        await store.save([TrustSaved("repo", b"1", _event("trusted"))]).wait()
        differs = TrustDiffers("repo", b"2", _event("trust_differs"))
        await store.save([differs]).wait()
    async with open_() as store:
        keeper = cast("_Keeper", store)
        assert (keeper.trusted("repo"), keeper.trusting()) == ((b"1", b"2"), ["repo"])
        # What is taken over is what there is.
        await store.save([TrustSaved("repo", b"3", _event("trusted"))]).wait()
        assert keeper.trusted("repo") == (b"3", None)
        await store.save([TrustDiffers("repo", b"4")]).wait()
        await store.save([TrustDiffers("repo", None)]).wait()
        assert keeper.trusted("repo") == (b"3", None)
        await store.save([TrustRemoved("repo", _event("untrusted"))]).wait()
        assert keeper.trusting() == []


async def check_trust_goes_with_its_repository(open_: Open) -> None:
    async with open_() as store:
        added = repository()
        await store.save([added]).wait()
        await store.save([TrustSaved("repo", b"1", _event("trusted"))]).wait()
        gone = structs.replace(added.repository, removed_at=2.0)
        await store.save([RepositoryChanged(gone, _event("removed"))]).wait()
        assert cast("_Keeper", store).trusted("repo") is None


CHECKS = (
    check_what_is_trusted_is_kept_as_it_was_last,
    check_trust_goes_with_its_repository,
)
