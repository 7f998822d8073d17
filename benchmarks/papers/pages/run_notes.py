"""Notes below the tables of a suite: machines, costs, peers, and what could still be better."""

import math
from collections.abc import Sequence

from pydantic import JsonValue

from benchmarks.papers.harness.comparison import Comparison
from benchmarks.papers.harness.measured_rows import MeasuredRow, find_default
from benchmarks.papers.harness.row import Row
from benchmarks.papers.harness.search import find_best
from benchmarks.papers.harness.settings import Settings
from benchmarks.papers.harness.suite import Suite, build_peer
from training.evaluation.counting import HALF_LIVES, WEIGHTS, WINDOWS

LIMITED_BY_ONE = frozenset(
    {"own_share", "own_weight", "group_decay", "basket_decay", "asymmetry", "groups"}
)
"""Settings of searches that cannot be more than one or, of groups, less."""


LEAST_SPEED_RATIO = 1.2
"""How much the speeds of machines differ at least, to be worth a sentence."""


def format_runs(measured: list[MeasuredRow]) -> str:
    """Format the machines and the days of the records."""
    records = [record for each in measured for record in each.records]
    machines = {
        f"{record.processor}, {record.threads} {'thread' if record.threads == 1 else 'threads'}, "
        f"torch {record.torch}" + ("" if record.device == "cpu" else f", on {record.device}")
        for record in records
    }
    days = sorted({record.started_at[:10] for record in records})
    span = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    sentences = [f"Machine: {'; '.join(sorted(machines))}. Run {span}."]
    if (ratio := _measure_speed_ratio(measured)) >= LEAST_SPEED_RATIO:
        sentences.append(
            f"Machines of one name differ: the CPU seconds of an epoch by up to {ratio:.1f} times "
            "between seeds of a row."
        )
    return " ".join(sentences)


def _measure_speed_ratio(measured: list[MeasuredRow]) -> float:
    """Measure by how much the processor seconds of an epoch differ between seeds of a row, at most.

    Returns:
        A ratio; 1 if no row of ours has two learning curves.
    """
    ratios = [1.0]
    for each in measured:
        ends = [record.curve[-1] for record in each.records if record.curve and not record.peer]
        speeds = [end.cpu_seconds / end.epoch for end in ends]
        if speeds and min(speeds) > 0:
            ratios.append(max(speeds) / min(speeds))
    return max(ratios)


def format_cost(measured: list[MeasuredRow]) -> str:
    """Format the processor time of all runs and choices, and how much was tried."""
    records = [record for each in measured for record in each.records]
    seconds = sum(record.cpu_seconds + record.choice_cpu_seconds for record in records)
    codes = {record.code for record in records}
    codes |= {trial.code for record in records for trial in record.trials}
    least = "at least " * ("" in codes)  # older ones do not name theirs
    codes -= {""}
    sentences = [f"All {len(records)} runs: {seconds / 3600:.1f} hours of one core."]
    sentences += [
        f"They and their trials are of {least}{len(codes)} versions of the code (`code` of "
        "records)."
    ] * (len(codes) > 1)
    tried = [_format_choice(each) for each in measured if each.records[0].trials]
    sentences += [
        "Settings tried on the validation questions, how many, and those chosen: "
        f"{'; '.join(tried)}."
    ] * bool(tried)
    return " ".join(sentences)


def _format_choice(measured: MeasuredRow) -> str:
    """Format the label of a row, how many settings were tried, and the best of them."""
    trials = measured.records[0].trials
    chosen = ", ".join(_list_settings(find_best(trials).settings))
    return f"{measured.row.label} {len(trials)}" + f" ({chosen})" * bool(chosen)


def _list_settings(settings: Settings) -> list[str]:
    """List the last parts of the names of settings with their values, those of tables too."""
    found: list[str] = []
    for name, value in settings.items():
        short = name.rpartition(".")[2]
        found += _list_settings(value) if isinstance(value, dict) else [f"{short} {_format(value)}"]
    return found


def _format(value: JsonValue) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def format_peers(suite: Suite, measured: list[MeasuredRow], comparison: Comparison | None) -> str:
    """Format what the peers were given: time, events of a history, and negatives."""
    peers = [each for each in measured if each.row.role == "peer"]
    if not peers:
        return ""
    read = [f"{each.row.label} {each.records[0].config['max_history']}" for each in peers]
    longer = "".join(
        f", of {each.row.label} {each.row.budget_seconds:g}"
        for each in peers
        if each.row.budget_seconds is not None
    )
    return (
        "A trial of a peer ends by patience, or with the epoch in which it has taken "
        f"{suite.peer_budget_seconds:g} CPU seconds{longer}; the fit for the test takes as many "
        "epochs as were best. Those of transformers have the width and heads of the suite's base "
        "recipe, unless their rows set others. Latest "
        f"events of a history that peers read: {', '.join(read)}.{_format_losses(peers)}"
        f"{_format_own_loss(measured, comparison)}"
    )


def _format_losses(peers: list[MeasuredRow]) -> str:
    """Format what the losses of peers compare a target with."""
    configs = {each.row.label: each.records[0].config for each in peers}
    sampled = {
        label: config["negatives"]
        for label, config in configs.items()
        if config.get("loss") != "softmax" and config.get("negatives") is not None
    }
    whole = [label for label in configs if label not in sampled and "loss" in configs[label]]
    parts = [f"all items, of {', '.join(whole)}"] * bool(whole)
    parts += [f"{count} drawn for each, of {label}" for label, count in sampled.items()]
    return f" Their losses compare a target with {'; '.join(parts)}." * bool(parts)


def _format_own_loss(measured: list[MeasuredRow], comparison: Comparison | None) -> str:
    """Format what the softmax of the default compares a target with."""
    default = find_default(measured)
    fit = {} if default is None else default.records[0].config.get("fit")
    loss = fit.get("loss") if isinstance(fit, dict) else None
    if comparison is None or not isinstance(loss, dict) or loss.get("kind") != "softmax":
        return ""
    above, negatives = loss.get("sample_above"), loss.get("negatives")
    assert isinstance(above, int)
    is_sampled = comparison.questions.items > above
    return f" That of the default: with {f'{negatives} per batch' if is_sampled else 'all items'}."


def format_rising(measured: list[MeasuredRow]) -> str:
    """Name the rows that might be better with more epochs."""
    rising = [each.row.label for each in measured if each.is_rising_at_the_end]
    cut = [
        each.row.label for each in measured if each.is_cut_short and each.row.label not in rising
    ]
    sentences = [
        "With some seed best after the last epoch of the fit, so not shown to be at its best: "
        f"{'; '.join(rising)}."
    ] * bool(rising)
    sentences += [
        "Ended by the budget before patience ran out, so not shown to be at its best: "
        f"{'; '.join(cut)}."
    ] * bool(cut)
    return " ".join(sentences)


def format_ends(suite: Suite, measured: list[MeasuredRow], comparison: Comparison | None) -> str:
    """Name the choices that might be better beyond the values that were tried."""
    found = [(each.row.label, _list_ends(suite, each)) for each in measured]
    if comparison is not None:
        found.insert(0, ("the counting references", _list_counting_ends(comparison)))
    ends = [f"{label} ({', '.join(names)})" for label, names in found if names]
    return f"Chosen at an end of the values tried: {'; '.join(ends)}." if ends else ""


def _list_ends(suite: Suite, measured: MeasuredRow) -> list[str]:
    """List the settings chosen at an end of the values of the row's search or trials."""
    row, trials = measured.row, measured.records[0].trials
    if not trials:
        return []
    best = find_best(trials).settings
    config = build_peer(suite, row) or suite.build_config(row, row.seeds[0])
    own_settings: Settings = config.model_dump(mode="json")
    ends = []
    for name in row.search or dict.fromkeys(name for trial in row.trials for name in trial):
        own = _read_setting(own_settings, name)
        tried = row.search.get(name, [trial.get(name, own) for trial in row.trials])
        short, chosen = name.rpartition(".")[2], best.get(name, own)
        if _is_end(short, chosen, tried):
            ends.append(f"{short} {chosen:g}")
    return ends


def _read_setting(settings: Settings, name: str) -> JsonValue:
    """Read a setting by its dotted name; None if there is none."""
    setting: JsonValue = settings
    for part in name.split("."):
        setting = setting.get(part) if isinstance(setting, dict) else None
    return setting


def _list_counting_ends(comparison: Comparison) -> list[str]:
    settings = comparison.questions.counting.model_dump()
    tried = {"half_life_days": HALF_LIVES, "weight": WEIGHTS, "window_days": WINDOWS}
    return [
        f"{name} {settings[name]:g}"
        for name, values in tried.items()
        if _is_end(name, settings[name], [math.inf if each is None else each for each in values])
    ]


def _is_end(name: str, chosen: JsonValue, values: Sequence[JsonValue]) -> bool:
    """Return whether a number is the largest or the smallest of some numbers.

    Zero, which turns a setting off, does not count, nor do the limits of what a setting can be.
    """
    numbers = [value for value in values if isinstance(value, int | float)]
    if not isinstance(chosen, int | float) or len({*numbers}) < 2 or len(numbers) < len(values):
        return False
    is_limit = chosen == 0 or (chosen == 1 and name in LIMITED_BY_ONE)
    return chosen in {min(numbers), max(numbers)} and not is_limit


def format_missing(
    suite: Suite,
    measured: list[MeasuredRow],
    comparison: Comparison | None,
    of_other_data: Sequence[Row] = (),
) -> str:
    """Name the rows without a record, and those with records of other data or other questions.

    Args:
        of_other_data: from `list_rows_of_other_data`.
    """
    recorded = {each.row.name for each in measured} | {row.name for row in of_other_data}
    missing = [row.label for row in suite.rows if row.name not in recorded]
    sentences = [f"Without a record: {'; '.join(missing)}."] * bool(missing)
    return " ".join(sentences + list_incomparable(measured, comparison, of_other_data))


def list_incomparable(
    measured: list[MeasuredRow], comparison: Comparison | None, of_other_data: Sequence[Row]
) -> list[str]:
    """List sentences that name the rows with records of other data or other questions."""
    other_data = [row.label for row in of_other_data]
    other_questions = [
        each.row.label
        for each in measured
        if comparison is not None and not comparison.has(each.row.name)
    ]
    sentences = [f"Records of other data are left out: {'; '.join(other_data)}."] * bool(other_data)
    return sentences + [
        f"Records of other questions are not compared: {'; '.join(other_questions)}."
    ] * bool(other_questions)
