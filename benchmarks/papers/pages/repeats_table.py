"""The recall of repeats and of new items apart, as Li et al. 2023 report next baskets.

Paper: Li, Jullien, Ariannezhad and de Rijke, "A Next Basket Recommendation Reality Check", TOIS
    2023: whether a model repeats or explores well are two questions.
"""

from typing import get_args

from benchmarks.papers.harness.comparison import Comparison, TargetKind
from benchmarks.papers.harness.references import REFERENCES
from benchmarks.papers.pages.figures import format_row, format_spread, name_metric


def render_repeats_table(comparison: Comparison | None) -> str:
    """Render the recall of targets that the history holds, and of the others.

    Empty where there is only one kind of target, or where seen items are left out.
    """
    if comparison is None or comparison.suite.excludes_seen:
        return ""
    is_repeat = comparison.questions.is_repeat
    if is_repeat.all() or not is_repeat.any():
        return ""
    suite, k = comparison.suite, comparison.recommended_items
    head = [
        f"repeats: {is_repeat.mean():.0%} of {len(is_repeat):,} targets",
        name_metric(suite, f"recall@{k} of repeats"),
        name_metric(suite, f"recall@{k} of new items"),
    ]
    labels = {name: REFERENCES.get(name, name) for name in comparison.list_references()} | {
        each.row.name: each.row.label for each in comparison.measured
    }
    lines = [format_row(head), format_row(["---", "---:", "---:"])]
    for name, label in labels.items():
        columns = (comparison.list_recalls(name, kind) for kind in get_args(TargetKind))
        lines.append(format_row([label, *(format_spread(suite, values) for values in columns)]))
    return "\n".join(lines)
