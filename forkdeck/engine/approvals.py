"""Who may do what: policy of the run, rules, mode, and requests that wait for the person.

The dispatcher asks before every call; the deck hands over answers. A parked request is an event
and a future: it holds no place at the endpoint, and it ends with its run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from forkdeck.config.rules import Rule, grant_text, judge
from forkdeck.engine.access import mode_allows, wanted
from forkdeck.errors import ConfigError
from forkdeck.model.events.session import RuleGranted
from forkdeck.model.events.tool import ApprovalAnswered, ApprovalAsked
from forkdeck.model.raw import JsonDict, to_raw
from forkdeck.model.words import Access, Answer, Mode

if TYPE_CHECKING:
    from forkdeck.engine.parts import EngineParts
    from forkdeck.engine.run import Run
    from forkdeck.model.launching import LaunchPlan
    from forkdeck.model.ports import Tool


@dataclass(frozen=True)
class Granted:
    """The call may run, in this view; `edited` is the command to run instead, when there is one."""

    access: Access
    edited: str | None = None


@dataclass(frozen=True)
class Refused:
    """The call must not run; `reason` goes to the model and names the rule."""

    reason: str
    summary: str = "denied"


@dataclass
class _Parked:
    asked: ApprovalAsked
    run: Run
    key: tuple[str, str, str]
    arguments: JsonDict
    answer: asyncio.Future[tuple[Answer, str]]
    edited: str | None = None


class Approvals:
    """Decides on calls.

    Args:
        parts: The deck's parts: rules, settings, hub, and whether someone can answer.
    """

    def __init__(self, parts: EngineParts) -> None:
        self._parts = parts
        self._hub = parts.hub
        self._parked: dict[str, _Parked] = {}
        self._people: set[asyncio.Task[None]] = set()

    def forbidden(self, run: Run, tool: str) -> str | None:
        """Say why the run's policy or a deny rule forbids a tool at all, or None."""
        policy = run.policy
        if (policy.tools is not None and tool not in policy.tools) or tool in policy.denied:
            return f"Refused by the profile {policy.name}: it does not give {tool}."
        if policy.kind == "look" and tool in ("edit", "write"):
            return (
                f"Refused by the rule of read-only forks: {tool} changes files, and this fork may "
                "not. Report the change as text instead."
            )
        judged = judge(self._rules(run), tool, {})
        if judged.kind == "deny" and judged.rule_text == tool:
            return f"Refused by the rule deny {judged.rule_text}."
        return None

    async def settle(
        self, run: Run, call: str, tool: Tool, arguments: JsonDict
    ) -> Granted | Refused:
        """Decide whether a call may run and in which view, asking the person when needed."""
        name = tool.spec.name
        why = self.forbidden(run, name)
        if why is not None:
            return Refused(why)
        rules = self._rules(run)
        root, cwd = run.workspace.root, run.workspace.cwd
        judged = judge(rules, name, arguments, root=root, cwd=cwd)
        if judged.kind == "deny":
            return Refused(f"Refused by the rule deny {judged.rule_text}.")
        need = wanted(run, name, arguments, self.mode(run), judged.kind == "allow")
        if isinstance(need, str):
            return Refused(need)
        allowed = mode_allows(self.mode(run), need, run.workspace.level)
        if allowed is False:
            return Refused(f"Refused by the mode {self.mode(run)}: {need.words}.")
        if judged.kind == "ask":
            granted = judge(self._granted(run), name, arguments, root=root, cwd=cwd)
            if granted.kind == "allow" and need.access != "outside":
                return Granted(need.access)
            rule = f"rule ask {judged.rule_text}"
            return await self._ask(run, call, tool, arguments, need.access, rule)
        if allowed is True or (judged.kind == "allow" and need.access != "outside"):
            return Granted(need.access)
        return await self._ask(run, call, tool, arguments, need.access, need.words)

    async def offer_work(
        self, run: Run, call: str, tool: Tool, arguments: JsonDict
    ) -> Granted | Refused:
        """Ask whether a look command that hit the read-only file system may run as work."""
        if run.policy.kind != "parent" or self.mode(run) == "plan":
            return Refused("This run may not work.")
        note = "It failed in the look view because the file system is read-only there."
        return await self._ask(
            run, call, tool, arguments, "work", "no rule allows it as work", note
        )

    async def confirm(
        self, run: Run, call: str, tool: str, text: str, *, plan: LaunchPlan, why: str
    ) -> Refused | None:
        """Ask whether a launch may start; None means yes.

        Args:
            run: The run that launches.
            call: Its first call, or an empty string for the person's.
            tool: Who asks.
            text: The plan in words.
            plan: The plan as data.
            why: Why it is asked about.
        """
        asked = ApprovalAsked(
            run=run.run,
            request=self._id(),
            call=call,
            tool=tool,
            argument=text,
            cwd=run.workspace.cwd,
            rule=why,
            plan=plan,
        )
        outcome = await self._park(run, asked, {"plan": text})
        return None if isinstance(outcome, Granted) else outcome

    def answer(self, request: str, answer: Answer, reason: str = "") -> bool:
        """Take the person's answer; identical requests of other runs are answered with it.

        Returns:
            False when there is no such open request.
        """
        parked = self._parked.get(request)
        if parked is None:
            return False
        same = [each for each in self._parked.values() if each.key == parked.key]
        for each in same:
            self._answered(each, answer, reason, "person")
        self._sweep()
        return True

    def answer_edited(self, request: str, command: str) -> str:
        """Allow one parked command once, with other words; only what a rule denies is refused.

        Returns:
            Why it was refused, or an empty string.
        """
        parked = self._parked.get(request)
        if parked is None:
            return "That request is not open any more."
        if parked.asked.tool != "bash":
            return "Only a command can be edited: allow or deny this one."
        if not command.strip():
            return "The command is empty: deny it instead."
        run, arguments = parked.run, {**parked.arguments, "command": command}
        root, cwd = run.workspace.root, run.workspace.cwd
        judged = judge(self._rules(run), "bash", arguments, root=root, cwd=cwd)
        if judged.kind == "deny":
            return f"Refused by the rule deny {judged.rule_text}."
        if command != parked.arguments.get("command"):
            parked.edited = command
        self._answered(parked, "once", "", "person")
        return ""

    def mode(self, run: Run) -> Mode:
        """Return the mode that holds for a run."""
        fork = self._hub.state.forks.get(run.run)
        if fork is not None and fork.mode is not None:
            return fork.mode
        return self._hub.state.session.mode

    async def close(self) -> None:
        """End what waits for a scripted person."""
        for task in list(self._people):
            task.cancel()
        await asyncio.gather(*self._people, return_exceptions=True)

    async def _ask(
        self,
        run: Run,
        call: str,
        tool: Tool,
        arguments: JsonDict,
        access: Access,
        rule: str,
        note: str = "",
    ) -> Granted | Refused:
        name = tool.spec.name
        root, cwd = run.workspace.root, run.workspace.cwd
        grant = None if access == "outside" else grant_text(name, arguments, root=root, cwd=cwd)
        asked = ApprovalAsked(
            run=run.run,
            request=self._id(),
            call=call,
            tool=name,
            argument=whole_argument(tool, arguments),
            cwd=cwd,
            rule=rule,
            grant=grant,
            view=access,
            note=note or _note(access, run),
        )
        return await self._park(run, asked, arguments)

    async def _park(self, run: Run, asked: ApprovalAsked, arguments: JsonDict) -> Granted | Refused:
        future: asyncio.Future[tuple[Answer, str]] = asyncio.get_running_loop().create_future()
        key = (asked.tool, bytes(to_raw(arguments)).decode(), asked.view or "")
        parked = _Parked(asked, run, key, arguments, future)
        self._parked[asked.request] = parked
        self._hub.append(asked)
        if not self._parts.attached:
            self._unattended(parked)
        try:
            answer, reason = await future
        except asyncio.CancelledError:
            if asked.request in self._parked:
                self._answered(parked, "deny", "the run was stopped", "abort")
            raise
        if answer == "deny":
            words = f"Refused by the person{f': {reason}' if reason else ''}."
            return Refused(reason if reason.startswith("Nobody") else words)
        return Granted(asked.view or "look", parked.edited)

    def _unattended(self, parked: _Parked) -> None:
        """Let the scripted person answer, or deny with a named reason."""
        person = self._parts.person
        if person is None:
            reason = "Nobody is attached to answer, so the call was denied."
            self._answered(parked, "deny", reason, "nobody")
            return

        async def ask() -> None:
            said = await person.answer(parked.asked)
            if parked.asked.request not in self._parked:
                return
            answer, reason = said or ("deny", "Nobody is attached to answer this request.")
            self._answered(parked, answer, reason, "scripted person" if said else "nobody")
            self._sweep()

        task = asyncio.create_task(ask(), name=f"person {parked.asked.request}")
        self._people.add(task)
        task.add_done_callback(self._people.discard)

    def _answered(self, parked: _Parked, answer: Answer, reason: str, by: str) -> None:
        asked = parked.asked
        self._parked.pop(asked.request, None)
        self._hub.append(
            ApprovalAnswered(
                run=asked.run,
                request=asked.request,
                answer=answer,
                reason=reason,
                by=by,
                edited=parked.edited,
            )
        )
        if answer not in ("once", "deny") and asked.grant is not None:
            scope = "session" if answer == "session" else asked.run
            if answer == "batch" and parked.run.batch is not None:
                scope = f"batch:{parked.run.batch}"
            granted = RuleGranted(run=asked.run, kind="allow", text=asked.grant, scope=scope)
            if not any(r.text == granted.text and r.scope == scope for r in self._hub.state.rules):
                self._hub.append(granted)
        if not parked.answer.done():
            parked.answer.set_result((answer, reason))

    def _sweep(self) -> None:
        """Answer requests that a rule granted meanwhile now allows."""
        for each in list(self._parked.values()):
            if each.asked.grant is None:
                continue
            workspace = each.run.workspace
            found = judge(
                self._granted(each.run),
                each.asked.tool,
                each.arguments,
                root=workspace.root,
                cwd=workspace.cwd,
            )
            if found.kind == "allow":
                self._answered(each, "once", f"allowed by {found.rule_text}", "rule")

    def _id(self) -> str:
        return f"q{self._hub.state.seq + 1}"

    def _rules(self, run: Run) -> list[Rule]:
        return [*self._parts.rules, *self._granted(run)]

    def _granted(self, run: Run) -> list[Rule]:
        """Return the rules that were granted for this run while the session ran."""
        scopes = {"session", run.run}
        if run.batch is not None:
            scopes.add(f"batch:{run.batch}")
        return list(_parsed(r for r in self._hub.state.rules if r.scope in scopes))


def _parsed(granted: Iterable[RuleGranted]) -> Iterable[Rule]:
    for each in granted:
        try:
            yield Rule.parse(each.text, each.kind)
        except ConfigError:
            # A rule of another version's log that cannot be read allows nothing.
            continue


def whole_argument(tool: Tool, arguments: JsonDict) -> str:
    """Return all that the person decides on: of an edit its text too, not only its path."""
    lines = [tool.describe(arguments)]
    if tool.spec.name in ("edit", "write"):
        if arguments.get("replace_all"):
            lines.append("everywhere in the file:")
        for name, mark in (("old", "- "), ("new", "+ "), ("content", "+ ")):
            text = arguments.get(name)
            if isinstance(text, str):
                lines += [mark + line for line in text.removesuffix("\n").split("\n")]
    return "\n".join(lines)


def _note(access: Access, run: Run) -> str:
    if access == "outside":
        return "It leaves the sandbox: it can reach the network and write anywhere you can."
    if access == "work":
        return f"It may change the project ({run.workspace.level})."
    return ""
