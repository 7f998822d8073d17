"""The gate: the rules that a newly trained model, the challenger, must pass to be activated.

Every rule is a function of the evidence that returns one check: a value, its threshold and a
sentence. A challenger passes if every rule that applies passes.
"""

import math
from collections.abc import Callable

from pydantic import NonNegativeInt

from model.config import Config, Measurements
from training.config import GateConfig


class Evidence(Measurements):
    """The measurements of a challenger; None where not measured or not applicable.

    Attributes:
        unsound: why it cannot be used at all: a loss, score or weight that is NaN or infinite, or a
            bundle that does not open.
        questions: number of questions.
        metric: the challenger's mean.
        champion: the champion's mean on the same questions; None before the first activation.
        over_champion: lower end of the 95 % interval of the lead over the champion.
        popularity: the mean of the popularity ranker that is harder to beat.
        over_popularity: lower end of the 95 % interval of the lead over it.
        index_recall: share of the exact ten best items that the index found.
        p95_seconds: 95th percentile of the latency.
        user_share: the share of the events that the user with most of them has.
        item_share: the share of the events that are one item's, of users who have little else.
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
    user_share: float | None = None
    item_share: float | None = None


class Check(Measurements):
    """The result of one rule.

    Attributes:
        value: the measurement; None where there is none.
        threshold: what the value is compared with.
        sentence: the check in words.
    """

    name: str
    value: float | None
    threshold: float
    passed: bool
    sentence: str


class Decision(Config):
    """The gate's decision on a challenger, with its checks."""

    promote: bool
    checks: tuple[Check, ...]

    @property
    def reason(self) -> str:
        """The sentences of the failed checks, or that all passed."""
        failed = [check.sentence for check in self.checks if not check.passed]
        return "; ".join(failed) if failed else f"all {len(self.checks)} checks of the gate passed"


Rule = Callable[[GateConfig, Evidence], Check | None]


def decide(gate: GateConfig, evidence: Evidence) -> Decision:
    """Apply every rule; an unusable challenger fails at the first, and the others are skipped."""
    sound = _check_soundness(gate, evidence)
    if not sound.passed:
        return Decision(promote=False, checks=(sound,))
    results = (rule(gate, evidence) for rule in _RULES)
    checks = (sound, *(check for check in results if check is not None))
    return Decision(promote=all(check.passed for check in checks), checks=checks)


def _check_soundness(_: GateConfig, evidence: Evidence) -> Check:
    sentence = "every loss, score and weight is finite, and the bundle opens"
    if evidence.unsound is not None:
        sentence = f"the challenger is unusable: {evidence.unsound}"
    passed = evidence.unsound is None
    return Check(name="sound", value=float(passed), threshold=1, passed=passed, sentence=sentence)


def _check_questions(gate: GateConfig, evidence: Evidence) -> Check:
    template = "number of questions {value:.0f}, required at least {least:.0f}"
    return _check_at_least("questions", evidence.questions, gate.questions, template)


def _check_floor(gate: GateConfig, evidence: Evidence) -> Check:
    template = f"{gate.metric} {{value:.4f}}, required at least {{least:.4f}}"
    return _check_at_least("floor", evidence.metric, gate.floor, template)


def _check_champion(gate: GateConfig, evidence: Evidence) -> Check | None:
    if evidence.champion is None:
        return None
    template = (
        f"lead over the champion ({gate.metric} {evidence.champion:.4f}): lower bound "
        "{value:+.4f} (95 %), required at least {least:+.4f}"
    )
    return _check_at_least("champion", evidence.over_champion, -gate.may_lose, template)


def _check_popularity(gate: GateConfig, evidence: Evidence) -> Check:
    of = math.nan if evidence.popularity is None else evidence.popularity
    template = (
        f"lead over popularity ({gate.metric} {of:.4f}): lower bound {{value:+.4f}} (95 %), "
        "required more than {least:+.4f}"
    )
    check = _check_at_least("popularity", evidence.over_popularity, gate.popularity_lead, template)
    is_more = check.value is not None and check.value > gate.popularity_lead
    return check.model_copy(update={"passed": is_more})


def _check_index_recall(gate: GateConfig, evidence: Evidence) -> Check:
    template = "index recall of the ten best items {value:.2%}, required at least {least:.2%}"
    return _check_at_least("index_recall", evidence.index_recall, gate.index_recall, template)


def _check_latency(gate: GateConfig, evidence: Evidence) -> Check:
    value, budget = evidence.p95_seconds, gate.p95_seconds
    measured = "not measured" if value is None else f"{1000 * value:.1f} ms"
    return Check(
        name="latency",
        value=value,
        threshold=budget,
        passed=value is not None and value <= budget,
        sentence=f"p95 latency {measured}, required at most {1000 * budget:.1f} ms",
    )


def _check_user_share(gate: GateConfig, evidence: Evidence) -> Check | None:
    return _check_share("user_share", evidence.user_share, gate.user_share, "one user")


def _check_item_share(gate: GateConfig, evidence: Evidence) -> Check | None:
    whose = "one item, of users who have little else,"
    return _check_share("item_share", evidence.item_share, gate.item_share, whose)


_RULES: tuple[Rule, ...] = (
    _check_questions,
    _check_floor,
    _check_champion,
    _check_popularity,
    _check_index_recall,
    _check_latency,
    _check_user_share,
    _check_item_share,
)


def _check_share(name: str, share: float | None, most: float, whose: str) -> Check | None:
    if share is None:
        return None
    return Check(
        name=name,
        value=share,
        threshold=most,
        passed=share <= most,
        sentence=f"largest share of the events of {whose} {share:.1%}, allowed at most {most:.1%}",
    )


def _check_at_least(name: str, value: float | None, least: float, template: str) -> Check:
    """Check that a value is at least a threshold; NaN fails."""
    return Check(
        name=name,
        value=None if value is None or math.isnan(value) else value,
        threshold=least,
        passed=value is not None and value >= least,
        sentence=template.format(value=math.nan if value is None else value, least=least),
    )
