"""The claim check of one fork: looks at the files its report names, compares, and says so.

`ForkRunner` calls `look` while the fork's view still stands, and `settle` once its work is saved.
A check never changes how a fork ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from forkdeck.engine.claims import MOST_UNVERIFIED, FileFact, check, named_files
from forkdeck.errors import PathRefused, ToolError
from forkdeck.model.events.fork import ClaimsChecked
from forkdeck.model.state import RunState
from forkdeck.sandbox.files import in_thread

if TYPE_CHECKING:
    from forkdeck.model.ports import Workspace
    from forkdeck.store.hub import Hub

LARGEST_BYTES: Final = 1024 * 1024
"""Files up to this size have their lines counted."""


async def look(workspace: Workspace, report: str) -> dict[str, FileFact]:
    """Return what is known of each file a report names; those it may not see are left out."""
    found: dict[str, FileFact] = {}
    for path, _ in named_files(report):
        try:
            found[path] = await _fact(workspace, path)
        except PathRefused:
            continue
    return found


async def _fact(workspace: Workspace, path: str) -> FileFact:
    try:
        data = await workspace.read_bytes(path, LARGEST_BYTES)
    except PathRefused:
        raise
    except ToolError:
        return FileFact(await in_thread(workspace.resolve(path).is_dir))
    if len(data) > LARGEST_BYTES:
        return FileFact(True)
    return FileFact(True, data.count(b"\n") + (not data.endswith(b"\n") and bool(data)))


def settle(hub: Hub, handle: str, report: str, files: dict[str, FileFact], root: str) -> None:
    """Compare a report with what its fork did and append the result, when it claims anything."""
    fork = hub.state.forks[handle]
    run = hub.state.runs.get(handle) or RunState(run=handle)
    claims = check(
        report,
        run,
        write=fork.write,
        changed=[change.path for change in fork.files],
        files=files,
        root=root,
    )
    if not claims.checked:
        return
    named = claims.unverified[:MOST_UNVERIFIED]
    if len(claims.unverified) > len(named):
        named = (*named, f"and {len(claims.unverified) - len(named)} more")
    hub.append(
        ClaimsChecked(
            run=handle, checked=claims.checked, verified=claims.verified, unverified=named
        )
    )
