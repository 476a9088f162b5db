"""Request heads of a session: equal heads are one object, and each is stored once on disk."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from forkdeck.errors import SessionError
from forkdeck.model.events.session import HeadRecorded
from forkdeck.sandbox.files import in_thread
from forkdeck.seeds.head import RequestHead, build_head

if TYPE_CHECKING:
    from forkdeck.engine.parts import EngineParts


class Heads:
    """Builds, shares, stores and loads heads.

    Args:
        parts: The deck's parts.
    """

    def __init__(self, parts: EngineParts) -> None:
        self._parts = parts
        self._known: dict[str, RequestHead] = {}
        self._stored: set[str] = set()

    def first(self) -> RequestHead:
        """Return the parent's head at the start of the session."""
        parts = self._parts
        if parts.head is not None:
            return self.share(parts.head)
        return self._build(parts.settings.model, None, None, thinking=True)

    def like(
        self,
        head: RequestHead,
        *,
        model: str,
        effort: str | None = None,
        system: str | None = None,
        thinking: bool = True,
        tools: frozenset[str] | None = None,
    ) -> RequestHead:
        """Return a head like `head` with these overrides; `head` itself when nothing changes.

        `tools` declares only these; for heads with a `system` of their own, which share nothing.
        """
        effort = effort or head.effort
        if model == head.model and effort == head.effort and system is None and thinking:
            return head
        return self._build(model, effort, system, thinking=thinking, tools=tools)

    def share(self, head: RequestHead) -> RequestHead:
        """Return the one object for heads that are equal to `head`."""
        return self._known.setdefault(head.sha256, head)

    async def record(self, run: str, head: RequestHead, *, thinking_from: int = 0) -> None:
        """Store a head (once) and note it as the head of `run`.

        Args:
            run: The run it belongs to from now on.
            head: The head.
            thinking_from: Messages of the run before this index are sent without thinking.

        Raises:
            SessionError: It cannot be stored.
        """
        if head.sha256 not in self._stored:
            await in_thread(self._write, head)
            self._stored.add(head.sha256)
        facts = self._parts.prices.facts(head.model)
        self._parts.hub.append(
            HeadRecorded(
                run=run,
                sha256=head.sha256,
                model=head.model,
                effort=head.effort or facts.effort,
                thinking=head.thinking,
                context_tokens=facts.context_tokens,
                head_tokens=head.estimated_tokens,
                thinking_from=thinking_from,
                endpoint=self._parts.provider.endpoint.base_url,
                account=self._parts.provider.endpoint.account,
            )
        )

    async def load(self, sha256: str) -> RequestHead:
        """Return a stored head.

        Raises:
            SessionError: It is not there.
            LogFormatError: It is no head.
        """
        known = self._known.get(sha256)
        if known is not None:
            return known
        path = self._parts.paths.heads / f"{sha256}.json"
        try:
            text = await in_thread(path.read_text, "utf-8")
        except (OSError, ValueError) as error:
            raise SessionError(
                f"The request head {sha256[:12]} of this session cannot be read: {error}.",
                "The conversation cannot be continued; replay still works.",
            ) from error
        return self.share(RequestHead.from_text(text))

    def _build(
        self,
        model: str,
        effort: str | None,
        system: str | None,
        *,
        thinking: bool,
        tools: frozenset[str] | None = None,
    ) -> RequestHead:
        endpoint = self._parts.provider.endpoint
        specs = [spec for spec in self._parts.specs if tools is None or spec.name in tools]
        head = build_head(
            model,
            specs or self._parts.specs,
            self._parts.prices.facts(model),
            effort=effort if endpoint.effort else None,
            thinking=thinking and endpoint.thinking,
            system=system,
        )
        return self.share(head)

    def _write(self, head: RequestHead) -> None:
        directory = self._parts.paths.heads
        path = directory / f"{head.sha256}.json"
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(path, flags, 0o600)
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                file.write(head.text)
        except OSError as error:
            raise SessionError(
                f"The request head cannot be stored in {directory}: {error.strerror}.",
                "Make room or permissions there, then send again.",
            ) from error
