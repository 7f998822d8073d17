"""Render the recorded results as the page benchmarks/papers/README.md.

python benchmarks/papers/table.py > benchmarks/papers/README.md
"""

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

SUITES: dict[str, tuple[str, list[str], list[str]]] = {
    "Stack Overflow badges (subset)": (
        "4,468 of the papers' 6,633 users, 22 badges; a fresh split of users, 80/10/10; every "
        "event of a test user but the first is asked for, given its time. Published, on the full "
        "data: Mercer 46.83, positional 44.03 (Xu et al. 2019, Table 3); this is a subset.",
        ["badges_mercer", "badges_positional"],
        ["accuracy", "ndcg@10", "mrr"],
    ),
    "MovieLens-1M, users 1-2999 (subset)": (
        "Complete histories of half the users; items with fewer than five ratings dropped; "
        "leave-one-out, the whole catalogue ranked, seen items left out. No published number is on "
        "this subset. Data: Harper and Konstan 2015, research only, not shipped.",
        ["movielens_mercer", "movielens_positional"],
        ["hit_rate@10", "ndcg@10", "mrr"],
    ),
    "Online Retail II (the demo)": (
        "Purchases only; the last tenth of the events is the test, each customer's first basket in "
        "it the question (1,660 of them); repeats allowed, nothing left out.",
        ["demo"],
        ["ndcg@10", "recall@10", "hit_rate@10", "mrr"],
    ),
}

LABELS = {
    "model": "{recipe}",
    "model_withheld": "{recipe}, query time withheld",
    "popular_all_time": "popularity, all time",
    "popular_last_week": "popularity, last 7 days",
    "last_item_markov": "last-item Markov",
    "personal_frequency": "personal frequency",
}


def main() -> None:
    """Print the page."""
    print("# Recorded results\n")
    print(
        "Made by `python benchmarks/papers/table.py` from the records in `results/`, each of which "
        "holds its command, machine,\nconfiguration, data digest, every seed's figures and its "
        "duration. Means over seeds, ± one standard deviation.\nThe tie rule is pessimistic "
        "(`training/metrics.py`). References are fitted on everything before the test, the models\n"
        "on the training part only."
    )
    for title, (told, recipes, metrics) in SUITES.items():
        records = [
            json.loads(file.read_text("utf-8"))
            for recipe in recipes
            if (file := HERE / "results" / f"{recipe}.json").exists()
        ]
        if records:
            _print_suite(title, told, records, metrics)


def _print_suite(title: str, told: str, records: list[dict[str, Any]], metrics: list[str]) -> None:
    print(f"\n## {title}\n\n{told}\n")
    print(f"| ranker | {' | '.join(metrics)} | seeds | s / run |")
    print(f"|---|{'---|' * len(metrics)}---|---|")
    for record in records:
        seconds = [run["seconds"] for run in record["runs"]]
        span = f"{min(seconds):.0f}" + (f"-{max(seconds):.0f}" if len(seconds) > 1 else "")
        for name in ("model", "model_withheld"):
            _print_row(record, name, metrics, f"{len(seconds)} | {span}")
    for name in LABELS:
        if not name.startswith("model"):
            _print_row(records[0], name, metrics, " | ")
    machine = records[0]["machine"]
    print(
        f"\n{machine['processor']}, {machine['threads']} thread(s) of {machine['cores']} cores, "
        f"torch {machine['torch']}. Commands:\n"
    )
    for record in records:
        print(f"    {record['command']}")
    _print_gaps(records)


def _print_row(record: dict[str, Any], name: str, metrics: list[str], end: str) -> None:
    summary = record["summary"][name]
    several = len(record["runs"]) > 1 and name.startswith("model")
    cells = [
        f"{summary[metric]['mean']:.4f}" + (f" ± {summary[metric]['sd']:.4f}" if several else "")
        for metric in metrics
    ]
    print(f"| {LABELS[name].format(recipe=record['recipe'])} | {' | '.join(cells)} | {end} |")


def _print_gaps(records: list[dict[str, Any]]) -> None:
    print("\nQuestions later than the last event of their history (the first seed):\n")
    for record in records:
        run = record["runs"][0]
        gap, whole = run["after_a_gap"]["model"], run["rows"]["model"]
        lead = run["ahead"]["personal_frequency"]
        print(
            f"- {record['recipe']}: {gap['questions']:.0f} of {whole['questions']:.0f}, ndcg@10 "
            f"{gap['ndcg@10']:.4f}, accuracy {gap['accuracy']:.4f}. All questions: ahead of "
            f"personal frequency by {lead[0]:+.4f} ndcg@10 (95 % {lead[1]:+.4f} to {lead[2]:+.4f})."
        )


if __name__ == "__main__":
    main()
