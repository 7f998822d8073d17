"""Calls to the models: in turns, and only as many as can be answered in time."""

import asyncio
import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar, final

from app.errors import OverloadedError, OverShareError, ServiceError
from app.inference.fair_queue import CallClass, FairQueue, FlowKey, Prospect, Turn
from app.inference.requester import SERVICE
from app.observability.metrics import Metrics
from model.inference.steps import Steps, run_at_once

T = TypeVar("T")

_NAME = "inference"
_TURN_SECONDS = 0.002
"""Seconds after which a long call lets others go first, at the end of its step."""
_LONG_SHARE = 0.5
"""Share of the places in the queue that calls which are not short may take."""
_LOOP_CALL_SECONDS = 0.025
"""Estimated seconds up to which a short call runs on the event loop while no thread computes: to
hand it to a thread and back, the two threads wait for each other and for the interpreter."""
_LOOP_SECONDS = 0.01
"""Seconds of calls on the event loop after which it turns to its connections, at the end of one.
Calls one after the other take less: the caches hold the model."""
_SUSTAINED_SECONDS = 0.25
"""Seconds of waiting calls without a break after which it is no burst any more."""


@dataclass(eq=False, slots=True)
class _Call:
    """A call, from its admission to its result.

    Attributes:
        flow: of its caller and class; a short call that takes too long becomes a long one.
        cost: estimated seconds.
        turn_seconds: seconds after which a turn ends.
        result: awaited by the caller, on its event loop.
        used: seconds of all turns so far.
        turn: of the queue.
        is_cancelled: whether nobody awaits the result any more.
    """

    steps: Steps[Any]
    flow: FlowKey
    cost: float
    turn_seconds: float
    result: "asyncio.Future[Any]"
    submitted_at: float
    may_use_loop: bool
    used: float = 0.0
    turn: Turn | None = None
    has_begun: bool = False
    is_cancelled: bool = False


@final
class InferenceScheduler:
    """Runs the steps of calls on a few threads, or the event loop, in the order of a `FairQueue`.

    With one thread, short calls of some milliseconds run on the event loop, after what it has read
    from its connections, unless the thread computes: it takes its turn with them. All others run on
    threads.

    A call is admitted if it may be expected to wait no longer than its class allows, given the
    estimated cost of those before it and its caller's share of the model. While nothing waits, a
    caller may use all of it. If too many calls wait, the flow with the most gives way.
    """

    def __init__(
        self,
        metrics: Metrics,
        *,
        threads: int,
        queue: int,
        patience_seconds: float,
        long_patience_seconds: float,
    ) -> None:
        """Start no thread before the first call.

        Args:
            threads: calls that run at once.
            queue: most calls that wait for a thread.
            patience_seconds: longest expected wait of a short call while calls of its caller have
                been waiting without a break.
            long_patience_seconds: longest expected wait of a long one.
        """
        # Looked up once: a lookup of labels takes as long as the rest of a turn's accounting.
        self._queue_seconds = {
            one: metrics.inference_queue_seconds.labels(one.label) for one in CallClass
        }
        self._run_seconds = {one: metrics.inference_seconds.labels(one.label) for one in CallClass}
        self._threads = threads
        self._most = threads + queue
        self._queue_length = queue
        # Long calls wait for seconds: without a limit of their own they would take every place.
        self._most_long = math.ceil(queue * _LONG_SHARE)
        self._patience_seconds = {
            CallClass.SHORT: patience_seconds,
            CallClass.LONG: long_patience_seconds,
            CallClass.BACKGROUND: long_patience_seconds,
        }
        self._queue: FairQueue[_Call] = FairQueue(time.monotonic)
        # Each wakes a thread, which takes turns until no call waits.
        self._tokens: SimpleQueue[bool] = SimpleQueue()
        self._workers: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._pending = 0
        self._computing = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closing = False

    @property
    def is_busy(self) -> bool:
        """Whether a new call would wait for a thread."""
        return self._pending >= self._threads

    def require_capacity(
        self, caller: str, call_class: CallClass = CallClass.SHORT, cost: float = 0.0
    ) -> None:
        """Check that a call would be admitted now.

        Args:
            cost: estimated seconds; 0 before the request is known.

        Raises:
            OverloadedError: if it would wait too long, or too many calls wait.
            OverShareError: if it would wait too long because its caller has its share.
        """
        with self._lock:
            self._require_capacity(FlowKey(caller, call_class), cost)

    async def run(
        self,
        steps: Steps[T],
        *,
        caller: str = SERVICE,
        call_class: CallClass = CallClass.SHORT,
        cost: float = 0.0,
        turn_seconds: float = _TURN_SECONDS,
        may_use_loop: bool = True,
    ) -> tuple[T, float]:
        """Run every step; return the result, and the seconds that they took.

        If the awaiting task is cancelled, no further step runs.

        Args:
            cost: estimated seconds.
            turn_seconds: of a short call, seconds of a processor after which it is a long one.
            may_use_loop: whether no step takes long, whatever was estimated.

        Raises:
            OverloadedError, OverShareError: as `require_capacity` does.
        """
        loop = asyncio.get_running_loop()
        call = _Call(
            steps,
            FlowKey(caller, call_class),
            cost,
            turn_seconds if call_class is CallClass.SHORT else _TURN_SECONDS,
            loop.create_future(),
            time.perf_counter(),
            may_use_loop,
        )
        with self._lock:
            self._require_capacity(call.flow, cost)
            evicted = self._make_room(call.flow)
            self._pending += 1
            self._queue.push(call)
        self._wake(loop)
        if evicted is not None:
            _deliver(evicted, error=self._build_full_error(evicted.flow))
        try:
            return await call.result, call.used
        except asyncio.CancelledError:
            self._abandon(call)
            raise

    async def call(self, work: Callable[[], T]) -> T:
        """Run a function on the threads as one step, on the service's own account."""
        result, _ = await self.run(run_at_once(work))
        return result

    def close(self, *, within_seconds: float = 10.0) -> None:
        """Complete the running steps, cancel all other calls, and end the threads.

        A thread that does not finish in time ends with the process.
        """
        with self._lock:
            self._is_closing = True
            while (call := self._queue.pop()) is not None:
                call.is_cancelled = True
                _deliver(call)
        for _ in self._workers:
            self._tokens.put(False)
        deadline = time.monotonic() + within_seconds
        for worker in self._workers:
            worker.join(max(deadline - time.monotonic(), 0.0))

    def _require_capacity(self, flow: FlowKey, cost: float) -> None:
        if self._pending < self._threads:
            return
        if self._is_full(flow) and not self._may_displace(flow):
            raise self._build_full_error(flow)
        limit = self._patience_seconds[flow.call_class]
        prospect = self._queue.predict(flow, cost)
        # At least one for each thread, so that no thread runs idle between calls.
        if prospect.waiting < self._threads:
            return
        if flow.call_class is CallClass.SHORT and prospect.busy_seconds < _SUSTAINED_SECONDS:
            return
        if prospect.seconds / self._threads > limit:
            raise self._build_wait_error(flow, prospect, limit)

    def _is_full(self, flow: FlowKey) -> bool:
        """Return whether no place is free for a call of a flow."""
        most_long = self._threads + self._most_long
        if flow.call_class is not CallClass.SHORT and self._queue.count_long() >= most_long:
            return True
        return self._pending >= self._most

    def _may_displace(self, flow: FlowKey) -> bool:
        """Return whether a call may take the place of one of the flow with the most calls."""
        longest = self._find_displaced(flow)
        return (
            longest is not None
            and self._queue.count(longest) > self._queue.count(flow) + 1
            and self._queue.find_last(longest) is not None
        )

    def _find_displaced(self, flow: FlowKey) -> FlowKey | None:
        """Find the flow whose calls give way to one of another: never a short one to a long one."""
        return self._queue.find_longest(of_short=flow.call_class is CallClass.SHORT)

    def _make_room(self, flow: FlowKey) -> _Call | None:
        """Remove a waiting call if no place is free for one of a flow, and return it."""
        longest = self._find_displaced(flow)
        if not self._is_full(flow) or longest is None:
            return None
        evicted = self._queue.find_last(longest)
        if evicted is not None and self._queue.discard(evicted):
            evicted.is_cancelled = True
            self._pending -= 1
        return evicted

    def _build_full_error(self, flow: FlowKey) -> ServiceError:
        own = self._queue.count(flow)
        most = self._queue_length if flow.call_class is CallClass.SHORT else self._most_long
        if own and len(self._queue) > own:
            return OverShareError(
                f"at most {most} calls may wait for the {_NAME} threads, and that "
                f"many do, {own} of this caller; send fewer at once, or try again shortly",
                seconds=1,
            )
        return OverloadedError(_NAME, most)

    def _build_wait_error(self, flow: FlowKey, prospect: Prospect, limit: float) -> ServiceError:
        label, seconds = flow.call_class.label, prospect.seconds / self._threads
        retry_after = max(math.ceil(seconds - limit), 1)
        if prospect.own_seconds / self._threads <= limit:
            return OverShareError(
                f"while others wait, this caller's {label} calls get {prospect.share:.2f} of the "
                f"model and may wait {limit:g} seconds for it, but one more would wait "
                f"{seconds:.2g}; send fewer at once, or try again in {retry_after} seconds",
                seconds=retry_after,
            )
        return OverloadedError(
            _NAME,
            prospect.waiting,
            f"a {label} call may wait {limit:g} seconds for the {_NAME} threads, but one more "
            f"would wait {seconds:.2g} for the {prospect.waiting} before it; try again in "
            f"{retry_after} seconds, or run more processes",
            seconds=retry_after,
        )

    def _abandon(self, call: _Call) -> None:
        """Stop a call whose result nobody awaits."""
        with self._lock:
            call.is_cancelled = True
            if self._queue.discard(call):
                self._end_call()
                call.steps.close()

    def _end_call(self) -> None:
        self._pending -= 1
        if not self._pending:
            self._queue.settle()

    def _wake(self, loop: asyncio.AbstractEventLoop) -> None:
        """Have the calls that wait run: on the event loop if it may take the next one."""
        with self._lock:
            if self._loop is not None and not self._loop.is_closed():
                return
            is_for_loop = self._may_use_loop()
            if is_for_loop:
                self._loop = loop
            elif not self._workers:
                self._start()
        if is_for_loop:
            # After the events of this iteration, so that what they bring waits in the queue, where
            # callers share the model.
            # In a context of its own, not that of the request that happens to be first.
            loop.call_soon(self._work_on_loop, loop, context=Context())
        else:
            self._tokens.put(True)

    def _work_on_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        ends_at = time.perf_counter() + _LOOP_SECONDS
        try:
            while time.perf_counter() < ends_at:
                with self._lock:
                    call = self._queue.pop() if self._may_use_loop() else None
                if call is None:
                    break
                self._take_turn(call, is_on_loop=True)
        finally:
            with self._lock:
                self._loop = None
                is_idle = not len(self._queue)
            if not is_idle:
                self._wake(loop)

    def _may_use_loop(self) -> bool:
        """Return whether the event loop may run the next call."""
        # Several threads run several calls at once.
        if self._threads > 1 or self._computing:
            return False
        call = self._queue.find_next()
        return (
            call is not None
            and call.may_use_loop
            and call.flow.call_class is CallClass.SHORT
            and 0 < call.cost <= _LOOP_CALL_SECONDS
            and not call.used
        )

    def _start(self) -> None:
        # A thread that waits for a hanging computation must not delay the end of the process.
        self._workers = [
            threading.Thread(target=self._work, name=f"kairos-{_NAME}_{number}", daemon=True)
            for number in range(self._threads)
        ]
        for worker in self._workers:
            worker.start()

    def _work(self) -> None:
        while self._tokens.get():
            while True:
                with self._lock:
                    call = self._queue.pop()
                    if call is None:
                        break
                    self._computing += 1
                self._take_turn(call)
                with self._lock:
                    self._computing -= 1
                # It would otherwise keep the result in memory until the next call.
                del call

    def _take_turn(self, call: _Call, *, is_on_loop: bool = False) -> None:
        """Run steps of a call until its turn ends; if it has not ended, it waits for the next.

        On the event loop a turn ends earlier, and a thread takes the next one.
        """
        began = time.perf_counter()
        if not call.has_begun:
            call.has_begun = True
            self._queue_seconds[call.flow.call_class].observe(began - call.submitted_at)
        # A short call is long if it computes for long, not if it waits for a processor.
        is_short = call.flow.call_class is CallClass.SHORT
        clock = time.thread_time if is_short else time.perf_counter
        turn_seconds = call.turn_seconds
        if is_on_loop:
            turn_seconds = min(turn_seconds, _LOOP_CALL_SECONDS)
        ends_at = clock() + turn_seconds
        outcome = _run_step(call)
        while outcome is None and clock() < ends_at:
            outcome = _run_step(call)
        elapsed = time.perf_counter() - began
        self._run_seconds[call.flow.call_class].inc(elapsed)
        with self._lock:
            self._queue.charge(call, elapsed)
            if outcome is None and (call.is_cancelled or self._is_closing):
                # Now, and not in another turn: what it holds would stay until then.
                call.is_cancelled = True
                outcome = _run_step(call)
            if outcome is None:
                if call.flow.call_class is CallClass.SHORT and not is_on_loop:
                    call.flow = call.flow._replace(call_class=CallClass.LONG)
                    call.turn_seconds, call.turn = _TURN_SECONDS, None
                self._queue.push(call)
            else:
                self._end_call()
        if outcome is not None:
            outcome()


def _run_step(call: _Call) -> Callable[[], None] | None:
    """Run one step; return how to deliver the outcome, or None before the last step."""
    try:
        if call.is_cancelled:
            call.steps.close()
            return partial(_deliver, call)
        next(call.steps)
    except StopIteration as last:
        return partial(_deliver, call, last.value)
    except BaseException as error:
        return partial(_deliver, call, error=error)
    return None


def _deliver(call: _Call, value: object = None, error: BaseException | None = None) -> None:
    """Set the result of a call on its event loop; a call that was cancelled has none."""

    def set_result() -> None:
        if call.result.done():
            return
        if error is not None:
            call.result.set_exception(error)
        elif call.is_cancelled:
            call.result.cancel()
        else:
            call.result.set_result(value)

    loop = call.result.get_loop()
    if _is_running_here(loop):
        set_result()
        return
    # The event loop of a process that ends may be gone already.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(set_result)


def _is_running_here(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False
