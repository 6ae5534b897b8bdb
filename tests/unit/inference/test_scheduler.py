"""The order of the device: urgent first, nothing starves, nothing is lost, and honest refusals."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.inference.scheduler import (
    ALIKE,
    CROWD_S,
    LEAST_RETRY_S,
    MAX_AHEAD_S,
    PATIENCE_S,
    SPARE_S,
    Job,
    Limits,
    Listener,
    Run,
    Scheduler,
)

LIMITS = Limits(workers=1, max_wait_s=1.0, hang_s=60.0)


def scheduler(*jobs: Job, max_batch: int = 1, limits: Limits = LIMITS) -> Scheduler:
    made = Scheduler(limits)
    made.max_batch = max_batch
    for job in jobs:
        made.add(job)
    return made


def order(queue: Scheduler, now: float = 0.0) -> list[Job]:
    """One after the other, all that waits."""
    return [job for run in iter(lambda: queue.take(now), None) for job in run.jobs]


def paced(seconds: float, workers: int = 1, *, max_batch: int = 1) -> Scheduler:
    """One that has seen what a piece of size 1 takes."""
    queue = scheduler(Job(0.0), limits=Limits(workers, 1.0, 60.0), max_batch=max_batch)
    finish(queue, queue.take(0.0), seconds)
    return queue


def fill(queue: Scheduler, *jobs: Job) -> list[tuple[Job, ...]]:
    """Add these; the runs in which they are made."""
    for job in jobs:
        queue.add(job)
    return [run.jobs for run in iter(lambda: queue.take(0.0), None)]


def finish(queue: Scheduler, run: Run | None, now: float, *, whole: bool = True) -> None:
    assert run is not None
    queue.ended(run, now, run.size if whole else None)


# -- the order ------------------------------------------------------------------------------------


def test_first_pieces_go_before_those_whose_listeners_have_audio() -> None:
    rich, poor, first = Job(due=5.0), Job(due=0.6), Job(due=0.0, first=True)
    assert order(scheduler(rich, poor, first)) == [first, poor, rich]


def test_equally_urgent_pieces_go_in_the_order_of_their_coming() -> None:
    jobs = [Job(due=1.0) for _ in range(5)]
    assert order(scheduler(*jobs)) == jobs
    firsts = [Job(due=1.0, first=True) for _ in range(5)]
    assert order(scheduler(*firsts)) == firsts


def test_nobody_falls_silent_for_a_new_turn() -> None:
    queue = paced(1.0)
    near, far = Job(due=2.4), Job(due=20.0)
    for job in (far, near, first := Job(due=0.0, first=True)):
        queue.add(job)
    assert order(queue) == [near, first, far], "near would be made 2 s from now, too near to 2.4"
    queue = paced(0.5)
    for job in (far, near, first):
        queue.add(job)
    assert order(queue) == [first, near, far], "a quicker device makes both in time"


def test_a_listener_in_silence_goes_before_a_new_turn_but_not_for_ever() -> None:
    now = 100.0
    silent, new = Job(now - 1), Job(now, first=True)
    assert order(scheduler(new, silent), now) == [silent, new]
    waiting, silent = Job(now - PATIENCE_S - 1, first=True), Job(now - 0.5)
    assert order(scheduler(silent, waiting), now) == [waiting, silent]


def test_a_cancelled_piece_is_gone_at_once() -> None:
    kept, gone = Job(2.0), Job(1.0)
    queue = scheduler(kept, gone)
    assert queue.cancel(gone) and not queue.cancel(gone)
    assert order(queue) == [kept]
    assert not queue.cancel(kept), "it runs: the engine is told by its stop"


def test_nothing_waiting_is_nothing_to_do() -> None:
    assert scheduler().take(0.0) is None


def test_a_piece_that_comes_now_is_made_at_once_only_where_a_worker_is_free() -> None:
    queue = scheduler()
    assert queue.idle and queue.waiting == 0
    queue.add(Job(0.0))
    assert not queue.idle and queue.waiting == 1, "it would wait behind this one"
    run = queue.take(0.0)
    assert not queue.idle and queue.waiting == 0
    finish(queue, run, 1.0)
    assert queue.idle


# -- several at once ------------------------------------------------------------------------------


def test_a_crowd_is_made_by_the_most_urgent_and_those_of_like_size() -> None:
    a, b, c = Job(1.0, size=100), Job(2.0, size=140), Job(3.0, size=90)
    long, first = Job(0.9, size=200), Job(0.0, first=True, size=100)
    queue = paced(1.0, max_batch=3)
    assert fill(queue, c, b, a, long, first) == [(long, b), (a, c), (first,)]


def test_where_few_wait_one_is_made_at_a_time_since_newcomers_wait_for_all_of_a_run() -> None:
    near, far = Job(2.0), Job(3.0)
    assert fill(paced(CROWD_S / 2, max_batch=8), far, near) == [(near,), (far,)]
    later = Job(4.0)
    assert fill(paced(CROWD_S / 2, max_batch=8), far, near, later) == [(near, far, later)]


def test_first_pieces_are_made_together_where_that_is_cheap() -> None:
    def firsts() -> list[Job]:
        return [Job(float(number), first=True) for number in range(4)]

    queue = paced(0.1, max_batch=4)
    assert [len(run) for run in fill(queue, *firsts())] == [4], "it is tried"
    queue = paced(0.1, max_batch=4)
    for job in firsts():
        queue.add(job)
    finish(queue, queue.take(0.0), 0.1 * (1 + 3 * 0.6))  # each further one costs 0.6 of the first
    assert [len(run) for run in fill(queue, *firsts())] == [1, 1, 1, 1]
    assert queue.backlog_s(0.0) == pytest.approx(0.4)


def test_what_a_crowd_takes_is_counted_by_runs_of_several() -> None:
    queue = paced(0.1, max_batch=4)
    for _ in range(4):
        queue.add(Job(0.0, first=True))
    run = queue.take(0.0)
    assert queue.backlog_s(0.0) == pytest.approx(0.175), "a quarter more for each, until it is seen"
    finish(queue, run, 0.1)
    for _ in range(25):
        queue.add(Job(9.0))
    assert queue.backlog_s(0.0) == CROWD_S, "for less than this one is made at a time"
    for _ in range(75):
        queue.add(Job(9.0))
    assert queue.backlog_s(0.0) == pytest.approx(10.0 / 4)


# -- listeners ------------------------------------------------------------------------------------


def test_a_listener_runs_dry_when_what_it_has_is_used_up() -> None:
    listener = Listener(10.0, 500)
    assert listener.due == 10.5
    listener.given(10.2, 2.0)
    assert listener.due == 12.5, "it hears on"
    listener.given(20.0, 1.0)
    assert listener.due == 21.0, "it was in silence meanwhile"


@pytest.mark.parametrize("unusable", [None, 0, -5_000])
def test_a_listener_of_whom_nothing_is_known_waits_now(unusable: int | None) -> None:
    assert Listener(7.0, unusable).due == 7.0


def test_nobody_is_ahead_by_more_than_the_longest_wait() -> None:
    listener = Listener(0.0, 10**9)
    assert listener.due == MAX_AHEAD_S
    listener.given(0.0, 100.0)
    assert listener.due == MAX_AHEAD_S


# -- refusing, and hanging ------------------------------------------------------------------------


def test_without_experience_everything_is_taken() -> None:
    queue = scheduler(*[Job(0.0) for _ in range(100)])
    assert queue.retry_after_s(0.0, due=0.0, first=True) == 0.0


def test_a_request_is_refused_when_others_would_keep_it_waiting_too_long() -> None:
    queue = paced(0.5)
    for _ in range(4):
        queue.add(Job(10.0, first=True))
    assert queue.backlog_s(10.0) == pytest.approx(2.0)
    assert queue.retry_after_s(10.0, due=10.0, first=True) == pytest.approx(1.0)
    assert queue.retry_after_s(10.0, due=11.5, first=False) == 0.0, "its listener can wait"


def test_what_is_expected_counts_for_those_that_come_meanwhile() -> None:
    queue = paced(0.5)
    soon = [Job(10.0, first=True) for _ in range(4)]
    for job in soon:
        queue.expect(job)
    assert queue.take(10.0) is None
    assert queue.backlog_s(10.0) == pytest.approx(2.0)
    assert queue.retry_after_s(10.0, due=10.0, first=True) == pytest.approx(1.0)
    for job in soon:
        queue.came(job)
    assert queue.backlog_s(10.0) == queue.retry_after_s(10.0, due=10.0, first=True) == 0.0


def test_what_is_less_urgent_does_not_count_and_more_workers_share_it() -> None:
    queue = paced(0.5)
    for _ in range(10):
        queue.add(Job(30.0))
    assert queue.retry_after_s(10.0, due=10.0, first=True) == 0.0
    pair = paced(0.5, workers=2)
    for _ in range(5):
        pair.add(Job(0.0))
    assert pair.backlog_s(0.0) == pytest.approx(1.25)
    assert pair.retry_after_s(0.0, due=0.0, first=False) == pytest.approx(0.25)


def test_what_runs_counts_with_what_is_left_of_it() -> None:
    queue = paced(0.1)
    queue.add(Job(0.0, size=30))
    queue.take(100.0)
    assert queue.retry_after_s(101.0, due=101.0, first=True) == pytest.approx(1.0)
    assert queue.retry_after_s(101.98, due=101.98, first=True) == LEAST_RETRY_S
    assert queue.retry_after_s(200.0, due=200.0, first=True) == 0.0, "it is late, not negative"


def test_what_pieces_take_is_learned_from_those_that_were_finished() -> None:
    queue = paced(1.0)
    queue.add(Job(0.0, size=10))
    finish(queue, queue.take(0.0), 0.1, whole=False)
    queue.add(Job(0.0, size=10))
    assert queue.backlog_s(0.0) == pytest.approx(10.0)
    finish(queue, queue.take(0.0), 5.0)
    queue.add(Job(0.0, size=10))
    assert queue.backlog_s(0.0) == pytest.approx(9.0)


def test_a_run_that_takes_too_long_hangs() -> None:
    queue = scheduler(Job(0.0), Job(0.0))
    run = queue.take(0.0)
    queue.take(30.0)
    assert [queue.stuck(now) for now in (59.9, 60.0, 90.0)] == [0, 1, 2]
    finish(queue, run, 95.0, whole=False)
    assert queue.stuck(95.0) == 1


# -- properties -----------------------------------------------------------------------------------


@dataclass
class World:
    """A device and all that happened to it."""

    queue: Scheduler
    now: float = 0.0
    added: dict[Job, float] = field(default_factory=dict)
    taken: list[Job] = field(default_factory=list)
    cancelled: list[Job] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)

    @property
    def waiting(self) -> list[Job]:
        return [job for job in self.added if job not in {*self.taken, *self.cancelled}]

    def add(self, deadline_ms: int, first: bool, size: int) -> None:
        job = Job(Listener(self.now, deadline_ms).due, first, size)
        self.added[job] = self.now
        self.queue.add(job)

    def take(self) -> None:
        before = self.waiting
        run = self.queue.take(self.now)
        if run is None:
            assert not before
            return
        self.check(run, before)
        self.taken += run.jobs
        self.runs.append(run)

    def check(self, run: Run, before: list[Job]) -> None:
        head = run.jobs[0]
        more_urgent = [job for job in before if job.urgency < head.urgency]
        for job in more_urgent:
            assert head.first and not job.first, "only a first piece goes before its time"
            assert self.now <= job.due - SPARE_S, "and before nobody who is near to silence"
        assert 1 <= len(run.jobs) <= self.queue.max_batch
        assert len({job.first for job in run.jobs}) == 1
        sizes = [job.size for job in run.jobs]
        assert max(sizes) <= ALIKE**2 * min(sizes)
        for job in before:
            latest = job.due + PATIENCE_S + 1e-6
            assert self.added[head] <= latest, "nothing that comes later than that goes before it"
            assert latest - self.added[job] <= MAX_AHEAD_S + PATIENCE_S + 1e-5


steps = st.one_of(
    st.tuples(
        st.just("add"),
        st.integers(-10, 60_000),
        st.booleans(),
        st.integers(min_value=1, max_value=300),
    ),
    st.tuples(st.just("take")),
    st.tuples(st.just("end"), st.booleans()),
    st.tuples(st.just("cancel"), st.integers(0, 20)),
    st.tuples(st.just("later"), st.floats(min_value=0, max_value=5)),
)


@given(st.lists(steps, max_size=80), st.integers(1, 4))
def test_whatever_happens_the_urgent_go_first_and_nothing_starves_or_is_lost(
    script: list[tuple[object, ...]], max_batch: int
) -> None:
    world = World(scheduler(max_batch=max_batch))
    for step in script:
        match step:
            case "add", int(deadline), bool(first), int(size):
                world.add(deadline, first, size)
            case ("take",):
                world.take()
            case "end", bool(whole) if world.runs:
                finish(world.queue, world.runs.pop(), world.now, whole=whole)
            case "cancel", int(number) if number < len(world.waiting):
                job = world.waiting[number]
                assert world.queue.cancel(job)
                world.cancelled.append(job)
            case "later", float(seconds):
                world.now += seconds
        assert world.queue.waiting == len(world.waiting)
        assert world.queue.running == len(world.runs)
        assert world.queue.backlog_s(world.now) >= 0
        assert world.queue.retry_after_s(world.now, due=world.now, first=True) >= 0
    while world.waiting:
        world.take()
    assert len(world.taken) + len(world.cancelled) == len(world.added)
    assert len(set(world.taken)) == len(world.taken), "each is made once"
