"""What a newly trained model, the challenger, must show before it takes the champion's place.

Every rule is a small function that says one thing about the evidence, with its value, its threshold
and a sentence for a person. A challenger passes where every rule that applies does.
"""

import math
from collections.abc import Callable

from pydantic import NonNegativeInt

from model.config import Config
from training.config import GateConfig


class Evidence(Config):
    """What is known of a challenger; None where it could not be measured, or does not apply.

    Attributes:
        unsound: why it cannot be used at all: a loss, a score or a weight that is no number, or a
            bundle that does not open.
        questions: how many were asked.
        metric: the challenger's mean.
        champion: the champion's, on the same questions; None before the first activation.
        over_champion: the lower end of the interval of the lead over the champion.
        popularity: the mean of the popularity that is harder to beat.
        over_popularity: the lower end of the interval of the lead over it.
        index_recall: share of the exact ten best that the index found.
        p95_seconds: of answers.
    """

    unsound: str | None = None
    questions: NonNegativeInt | None = None
    metric: float | None = None
    champion: float | None = None
    over_champion: float | None = None
    popularity: float | None = None
    over_popularity: float | None = None
    index_recall: float | None = None
    p95_seconds: float | None = None


class Check(Config):
    """One rule, applied.

    Attributes:
        value: what was measured; None where it could not be.
        threshold: what it is held against.
        sentence: the same for a person.
    """

    name: str
    value: float | None
    threshold: float
    passed: bool
    sentence: str


class Decision(Config):
    """What the gate says of a challenger, and why."""

    promote: bool
    checks: tuple[Check, ...]

    @property
    def reason(self) -> str:
        """Why it is refused, or that nothing speaks against it."""
        failed = [check.sentence for check in self.checks if not check.passed]
        return "; ".join(failed) if failed else f"all {len(self.checks)} checks of the gate passed"


Rule = Callable[[GateConfig, Evidence], Check | None]


def decide(gate: GateConfig, evidence: Evidence) -> Decision:
    """Apply every rule. Of a challenger that cannot be used, nothing else is asked."""
    sound = _is_sound(gate, evidence)
    if not sound.passed:
        return Decision(promote=False, checks=(sound,))
    found = (rule(gate, evidence) for rule in _RULES)
    checks = (sound, *(check for check in found if check is not None))
    return Decision(promote=all(check.passed for check in checks), checks=checks)


def _is_sound(_: GateConfig, evidence: Evidence) -> Check:
    told = "every loss, score and weight is a number, and the bundle opens"
    if evidence.unsound is not None:
        told = f"every loss, score and weight must be a number, however {evidence.unsound}"
    passed = evidence.unsound is None
    return Check(name="sound", value=float(passed), threshold=1, passed=passed, sentence=told)


def _asks_enough(gate: GateConfig, evidence: Evidence) -> Check:
    return _at_least(
        "questions", evidence.questions, gate.questions, "{value:.0f} questions of {least:.0f}"
    )


def _reaches_the_floor(gate: GateConfig, evidence: Evidence) -> Check:
    told = f"{gate.metric} is {{value:.4f}}, the floor {{least:.4f}}"
    return _at_least("floor", evidence.metric, gate.floor, told)


def _is_not_worse_than_the_champion(gate: GateConfig, evidence: Evidence) -> Check | None:
    if evidence.champion is None:
        return None
    told = (
        f"the lead over the champion's {gate.metric} of {evidence.champion:.4f} is at least "
        "{value:+.4f} (95 % interval), and must be {least:+.4f}"
    )
    return _at_least("champion", evidence.over_champion, -gate.may_lose, told)


def _beats_popularity(gate: GateConfig, evidence: Evidence) -> Check:
    of = math.nan if evidence.popularity is None else evidence.popularity
    told = (
        f"the lead over popularity's {gate.metric} of {of:.4f} is at least {{value:+.4f}} (95 % "
        "interval), and must be more than {least:+.4f}"
    )
    check = _at_least("popularity", evidence.over_popularity, gate.popularity_lead, told)
    is_more = check.value is not None and check.value > gate.popularity_lead
    return check.model_copy(update={"passed": is_more})


def _index_finds_the_best(gate: GateConfig, evidence: Evidence) -> Check:
    told = "the index finds {value:.2%} of the exact ten best items, and must find {least:.2%}"
    return _at_least("index_recall", evidence.index_recall, gate.index_recall, told)


def _answers_in_time(gate: GateConfig, evidence: Evidence) -> Check:
    value, budget = evidence.p95_seconds, gate.p95_seconds
    taken = "was not measured" if value is None else f"is {1000 * value:.1f} ms"
    return Check(
        name="latency",
        value=value,
        threshold=budget,
        passed=value is not None and value <= budget,
        sentence=f"the 95th percentile of an answer {taken}, the budget {1000 * budget:.1f} ms",
    )


_RULES: tuple[Rule, ...] = (
    _asks_enough,
    _reaches_the_floor,
    _is_not_worse_than_the_champion,
    _beats_popularity,
    _index_finds_the_best,
    _answers_in_time,
)


def _at_least(name: str, value: float | None, least: float, told: str) -> Check:
    """A rule that something is as large as a threshold; NaN never is."""
    return Check(
        name=name,
        value=None if value is None or math.isnan(value) else value,
        threshold=least,
        passed=value is not None and value >= least,
        sentence=told.format(value=math.nan if value is None else value, least=least),
    )
