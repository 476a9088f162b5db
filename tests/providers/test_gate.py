"""The gate: order, width, closing, spacing, back-off; all in a time that the test owns."""

from __future__ import annotations

import asyncio
import random

import pytest

from forkdeck import errors
from forkdeck.providers.gate import ATTEMPTS, RESENT, RateGate
from tests.providers.support import ManualClock, settle


class Crowd:
    """Runs that want in."""

    def __init__(self, gate: RateGate) -> None:
        self.gate = gate
        self.inside: list[str] = []
        self.told: dict[str, list[tuple[str, int]]] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def come(self, *runs: str) -> None:
        for run in runs:
            self.tasks[run] = asyncio.create_task(self._enter(run))
        await settle()

    async def _enter(self, run: str) -> None:
        told = self.told.setdefault(run, [])
        await self.gate.enter(run, lambda reason, ms: told.append((reason, ms)))
        self.inside.append(run)

    async def end(self) -> None:
        for task in self.tasks.values():
            task.cancel()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def test_first_come_first_served(clock):
    crowd = Crowd(RateGate(clock, width=2, rng=random.Random(1)))
    await crowd.come("a", "b", "c", "d")
    assert crowd.inside == ["a", "b"]
    assert crowd.told == {"a": [], "b": [], "c": [("place", 0)], "d": [("place", 0)]}
    crowd.gate.leave("a")
    await settle()
    assert crowd.inside == ["a", "b", "c"]
    await crowd.end()


async def test_eight_go_at_once_when_all_is_well(clock):
    crowd = Crowd(RateGate(clock, rng=random.Random(1)))
    await crowd.come(*"abcdefgh")
    assert crowd.inside == list("abcdefgh")
    assert clock.sleeping == 0


async def test_leaving_twice_or_without_entering_is_harmless(clock):
    crowd = Crowd(RateGate(clock, width=1))
    crowd.gate.leave("x")
    await crowd.come("a", "b")
    crowd.gate.leave("a")
    crowd.gate.leave("a")
    await settle()
    assert crowd.inside == ["a", "b"]
    assert crowd.gate.inside == 1


async def test_retry_after_closes_for_all_then_opens_spaced(clock):
    crowd = Crowd(RateGate(clock, width=8, rng=random.Random(1)))
    await crowd.come("a")
    assert crowd.gate.wait_after(errors.RateLimited("x", retry_after_s=18.0), 1) == (18.0, None)
    crowd.gate.leave("a")
    await crowd.come("b", "c", "d")
    assert crowd.inside == ["a"]
    assert crowd.told["b"] == [("429", 18_000)]
    await clock.advance(17_999)
    assert crowd.inside == ["a"]
    await clock.advance(1)
    assert crowd.inside == ["a", "b"]
    await clock.advance(49)
    assert crowd.inside == ["a", "b"]
    await clock.advance(51)
    assert crowd.inside == ["a", "b", "c"]
    await clock.advance(100)
    assert crowd.inside == ["a", "b", "c", "d"]
    assert clock.sleeping == 0


async def test_a_longer_closing_is_told_and_a_shorter_one_changes_nothing(clock):
    crowd = Crowd(RateGate(clock))
    crowd.gate.wait_after(errors.RateLimited("x", retry_after_s=5.0), 1)
    await crowd.come("a")
    crowd.gate.wait_after(errors.RateLimited("x", retry_after_s=9.0), 1)
    crowd.gate.wait_after(errors.RateLimited("x", retry_after_s=1.0), 1)
    assert crowd.told["a"] == [("429", 5_000), ("429", 9_000)]
    await clock.advance(8_999)
    assert crowd.inside == []
    await clock.advance(1)
    assert crowd.inside == ["a"]


async def test_width_halves_once_per_burst_and_climbs_back(clock):
    gate = RateGate(clock, width=8)
    limited = errors.RateLimited("x")
    for _ in range(5):
        gate.wait_after(limited, 1)
    assert gate.width == 4
    clock.ms += 1_000
    gate.wait_after(limited, 1)
    assert gate.width == 2
    for _ in range(10):
        clock.ms += 1_000
        gate.wait_after(limited, 1)
    assert gate.width == 1
    widths = []
    for _ in range(28):
        gate.succeeded()
        widths.append(gate.width)
    assert widths[:6] == [2, 2, 3, 3, 3, 4]
    assert widths[-1] == 8
    gate.succeeded()
    assert gate.width == 8


async def test_a_narrow_gate_lets_those_inside_finish(clock):
    crowd = Crowd(RateGate(clock, width=4))
    await crowd.come("a", "b", "c", "d")
    crowd.gate.wait_after(errors.RateLimited("x"), 1)
    await crowd.come("e")
    crowd.gate.leave("a")
    crowd.gate.leave("b")
    await settle()
    assert "e" not in crowd.inside
    crowd.gate.leave("c")
    await settle()
    assert crowd.inside[-1] == "e"


async def test_giving_up_in_the_queue_holds_nobody(clock):
    crowd = Crowd(RateGate(clock, width=1))
    await crowd.come("a", "b", "c")
    crowd.tasks["b"].cancel()
    await settle()
    crowd.gate.leave("a")
    await settle()
    assert crowd.inside == ["a", "c"]


async def test_giving_up_at_the_moment_of_entering_gives_the_place_on(clock):
    crowd = Crowd(RateGate(clock, width=1))
    await crowd.come("a", "b", "c")
    crowd.gate.leave("a")
    crowd.tasks["b"].cancel()
    await settle()
    assert crowd.inside == ["a", "c"]
    assert crowd.gate.inside == 1


async def test_giving_up_while_closed_stops_the_timer(clock):
    crowd = Crowd(RateGate(clock))
    crowd.gate.wait_after(errors.RateLimited("x", retry_after_s=60), 1)
    await crowd.come("a", "b")
    assert clock.sleeping == 1
    await crowd.end()
    await settle()
    assert clock.sleeping == 0
    assert len(asyncio.all_tasks()) == 1


async def test_a_storm_of_cancellations_loses_no_place(clock):
    rng = random.Random(3)
    crowd = Crowd(RateGate(clock, width=3, rng=rng))
    for number in range(200):
        await crowd.come(f"r{number}")
        for run in list(crowd.inside):
            if rng.random() < 0.4:
                crowd.inside.remove(run)
                crowd.gate.leave(run)
        if rng.random() < 0.3:
            waiting = [run for run, task in crowd.tasks.items() if not task.done()]
            if waiting:
                crowd.tasks[rng.choice(waiting)].cancel()
        if rng.random() < 0.1:
            crowd.gate.wait_after(errors.RateLimited("x", retry_after_s=0.2), 1)
        crowd.gate.succeeded()
        await clock.advance(rng.randrange(200))
        assert crowd.gate.inside == len(crowd.inside) <= 3
    await crowd.end()


@pytest.mark.parametrize(
    "error",
    [
        errors.RateLimited("x"),
        errors.Overloaded("x"),
        errors.ServerFault("x"),
        errors.Unreachable("x"),
    ],
)
async def test_five_attempts_with_growing_full_jitter(clock, error):
    gate = RateGate(clock, rng=random.Random(5))
    for attempt in range(1, ATTEMPTS):
        waits = [gate.wait_after(error, attempt) for _ in range(200)]
        seconds = [wait[0] for wait in waits if wait is not None]
        assert len(seconds) == 200
        assert all(1 <= wait <= min(30, 2**attempt) for wait in seconds)
        assert max(seconds) - min(seconds) > 0.5 * (2**attempt - 1)
        assert waits[0] is not None
        assert waits[0][1] == ATTEMPTS
    assert gate.wait_after(error, ATTEMPTS) is None


async def test_told_waits_have_no_last_attempt(clock):
    gate = RateGate(clock)
    assert gate.wait_after(errors.RateLimited("x", retry_after_s=3.0), 99) == (3.0, None)
    wait = gate.wait_after(errors.Overloaded("x", retry_after_s=20.0), 1)
    assert wait == (20.0, ATTEMPTS)


async def test_cut_streams_are_sent_again_three_times(clock):
    gate = RateGate(clock)
    assert [gate.wait_after(errors.StreamCut("x"), n) is None for n in (1, 2, 3, 4)] == [
        False,
        False,
        False,
        True,
    ]
    wait = gate.wait_after(errors.StreamCut("x"), 1)
    assert wait is not None
    assert wait[1] == RESENT + 1


@pytest.mark.parametrize(
    "kind",
    [
        errors.AuthFailed,
        errors.ModelNotFound,
        errors.BadRequest,
        errors.NotAnEndpoint,
        errors.ContextTooLong,
        errors.SpendLimit,
    ],
)
async def test_what_waiting_cannot_mend_is_given_up(clock, kind):
    assert RateGate(clock).wait_after(kind("x"), 1) is None


async def test_same_seed_same_waits(clock):
    def waits() -> list[object]:
        gate = RateGate(clock, rng=random.Random(9))
        return [gate.wait_after(errors.ServerFault("x"), n) for n in (1, 2, 3, 4)]

    assert waits() == waits()


async def test_time_that_passes_while_it_tells_leaves_nobody_waiting(clock):
    """The moment to open may come between the look at the clock and the timer."""
    gate = RateGate(clock, width=8, rng=random.Random(1))
    gate.wait_after(errors.RateLimited("Too many.", status=429, retry_after_s=2.0), 1)

    def late(_: str, ms: int) -> None:
        clock.ms += ms

    entered = asyncio.create_task(gate.enter("a", late))
    await settle()
    assert entered.done()
    entered.cancel()
