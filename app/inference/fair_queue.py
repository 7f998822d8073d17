"""The order in which calls take their turns on the inference threads."""

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from operator import attrgetter, itemgetter
from typing import Generic, NamedTuple, Protocol, TypeVar, final

_KEPT_FLOWS = 64
"""Flows beyond which those without calls are forgotten."""


class CallClass(Enum):
    """How a call competes with others: its name in metrics, and its weight.

    While calls of several flows wait, each flow gets seconds of the model in proportion to its
    weight.
    """

    SHORT = ("short", 4.0)
    LONG = ("long", 1.0)
    BACKGROUND = ("background", 0.25)

    def __init__(self, label: str, weight: float) -> None:
        self.label = label
        self.weight = weight


class FlowKey(NamedTuple):
    """The calls of one class of one caller."""

    caller: str
    call_class: CallClass


class QueuedCall(Protocol):
    """What the queue reads of a call.

    Attributes:
        flow: the flow that the call belongs to now.
        cost: estimated seconds of the model, of the whole call.
        used: seconds that it has had.
        turn: its place in its flow, for the queue alone; None before it has one.
    """

    flow: FlowKey
    cost: float
    used: float
    turn: "Turn | None"


class Turn(NamedTuple):
    """The place of a call in its flow: the least one goes next.

    Attributes:
        start: seconds that each call of the flow has had before this turn begins.
        number: of the call, in the order of arrival.
    """

    start: float
    number: int


Call = TypeVar("Call", bound=QueuedCall)


@dataclass(slots=True)
class _Flow(Generic[Call]):
    """The calls of one flow.

    Attributes:
        start: virtual time at which its next turn begins.
        since: the instant since which some call has been waiting.
        round: seconds that each of its calls would have had, if all ran at once.
        waiting: heap of the calls without a thread.
        running: calls with a thread.
    """

    start: float
    since: float
    round: float = 0.0
    waiting: list[tuple[Turn, Call]] = field(default_factory=list)
    running: list[Call] = field(default_factory=list)

    def sum_seconds(self, each: float = math.inf) -> float:
        """Sum what its calls still take, at most `each` of every one."""
        calls = (*self.running, *(call for _, call in self.waiting))
        return sum(min(max(call.cost - call.used, 0.0), each) for call in calls)


class Prospect(NamedTuple):
    """What a new call of a flow would have to wait for.

    Attributes:
        waiting: calls of the flow that wait.
        own_seconds: estimated seconds of those that would run before it.
        share: the flow's share of the model while others wait as they do now, 0 to 1.
        seconds: `own_seconds`, and what the others get in the meantime.
        busy_seconds: for how long some call of the flow has been waiting without a break.
    """

    waiting: int
    own_seconds: float
    share: float
    seconds: float
    busy_seconds: float


@final
class FairQueue(Generic[Call]):
    """Start-time fair queueing between flows, and between the calls of one.

    A turn of a flow begins at the virtual time at which its previous one ended: a flow that has had
    more seconds than its share waits until the others have caught up, and one that has been idle
    goes next. The calls of a flow take turns in the same way, so that small ones end early and none
    waits for ever; short calls, which need one turn only, run in the order of their arrival.
    Nothing here is locked.

    Paper: Goyal, Vin and Cheng 1996 (start-time fair queueing).
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._flows: dict[FlowKey, _Flow[Call]] = {}
        self._virtual_time = 0.0
        self._number = 0
        self._waiting = 0

    def __len__(self) -> int:
        return self._waiting

    def push(self, call: Call) -> None:
        """Add a call, new or between two of its turns.

        A call that takes longer than estimated is expected to take twice what it has had.
        """
        flow = self._flows.get(call.flow)
        if flow is None:
            flow = self._flows[call.flow] = _Flow(self._virtual_time, self._clock())
        elif not flow.waiting:
            flow.start = max(flow.start, self._virtual_time)
            flow.since = self._clock()
        if call.used > call.cost:
            call.cost = 2 * call.used
        if call.turn is None:
            self._number += 1
            call.turn = Turn(flow.round, self._number)
        heapq.heappush(flow.waiting, (call.turn, call))
        self._waiting += 1

    def pop(self) -> Call | None:
        """Take the call whose turn it is; None if none waits. `charge` ends its turn."""
        flow = self._find_next_flow()
        if flow is None:
            return None
        self._virtual_time = max(self._virtual_time, flow.start)
        turn, call = heapq.heappop(flow.waiting)
        flow.round = max(flow.round, turn.start)
        flow.running.append(call)
        self._waiting -= 1
        return call

    def find_next(self) -> Call | None:
        """Find the call whose turn it is; None if none waits."""
        flow = self._find_next_flow()
        return None if flow is None else flow.waiting[0][1]

    def _find_next_flow(self) -> _Flow[Call] | None:
        if not self._waiting:
            return None
        waiting = (flow for flow in self._flows.values() if flow.waiting)
        return min(waiting, key=attrgetter("start"))

    def charge(self, call: Call, seconds: float) -> None:
        """End the turn of a call, which took so many seconds."""
        flow = self._flows[call.flow]
        flow.round += seconds / (len(flow.waiting) + len(flow.running))
        flow.running.remove(call)
        flow.start += seconds / call.flow.call_class.weight
        call.used += seconds
        if call.turn is not None:
            call.turn = call.turn._replace(start=call.turn.start + seconds)
        if len(self._flows) > _KEPT_FLOWS:
            self._forget_idle()

    def discard(self, call: Call) -> bool:
        """Remove a call that waits; return whether it did."""
        flow = self._flows.get(call.flow)
        entries = [] if flow is None else flow.waiting
        for position, (_, waiting) in enumerate(entries):
            if waiting is call:
                entries.pop(position)
                heapq.heapify(entries)
                self._waiting -= 1
                return True
        return False

    def settle(self) -> None:
        """Forget every flow, when no call waits or runs: an idle model owes nobody anything."""
        self._flows.clear()

    def find_longest(self, *, of_short: bool = True) -> FlowKey | None:
        """Find the flow with the most waiting calls; None if none waits.

        Args:
            of_short: whether flows of short calls count, too.
        """
        waiting = (key for key, flow in self._flows.items() if flow.waiting)
        eligible = (key for key in waiting if of_short or key.call_class is not CallClass.SHORT)
        return max(eligible, key=self.count, default=None)

    def count_long(self) -> int:
        """Count the calls that are not short, waiting or with a thread."""
        return sum(
            len(flow.waiting) + len(flow.running)
            for key, flow in self._flows.items()
            if key.call_class is not CallClass.SHORT
        )

    def count(self, key: FlowKey) -> int:
        """Count the waiting calls of a flow."""
        flow = self._flows.get(key)
        return 0 if flow is None else len(flow.waiting)

    def find_last(self, key: FlowKey) -> Call | None:
        """Find the latest call of a flow that has not had a turn; None if all have."""
        fresh = [entry for entry in self._flows[key].waiting if not entry[1].used]
        return max(fresh, key=itemgetter(0))[1] if fresh else None

    def predict(self, key: FlowKey, cost: float) -> Prospect:
        """Predict what a new call of a flow would have to wait for.

        Args:
            cost: of the new call, in seconds.
        """
        flow = self._flows.get(key)
        if flow is None or not flow.waiting:
            own = 0.0 if flow is None else flow.sum_seconds()
            return Prospect(0, own, share=1.0, seconds=own, busy_seconds=0.0)
        # Long calls take turns with the new one until it ends; short ones run to their ends.
        own = flow.sum_seconds(cost if key.call_class is CallClass.LONG else math.inf)
        weight = weights = key.call_class.weight
        seconds = own
        for other_key, other in self._flows.items():
            if other is not flow and other.waiting:
                other_weight = other_key.call_class.weight
                seconds += min(other.sum_seconds(), own * other_weight / weight)
                weights += other_weight
        busy_seconds = self._clock() - flow.since
        return Prospect(len(flow.waiting), own, weight / weights, seconds, busy_seconds)

    def _forget_idle(self) -> None:
        """Forget flows without calls, unless they have had more than their share."""
        self._flows = {
            key: flow
            for key, flow in self._flows.items()
            if flow.waiting or flow.running or flow.start > self._virtual_time
        }
