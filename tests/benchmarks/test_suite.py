from pathlib import Path

import numpy as np
import pytest

from benchmarks.papers.harness.settings import digest, merge
from benchmarks.papers.harness.suite import AFTER_GAP_METRICS, METRICS, RANK_METRICS, Suite
from model.encoders.popularity import PopularityConfig
from model.encoders.self_attention import SelfAttentionConfig
from model.errors import TrainingError
from model.time_encodings.mercer import MercerConfig
from model.time_encodings.positional import PositionalConfig
from tests.benchmarks.tiny_suite import SUITE, folder_with_suite, suite_in
from training.config import BCEConfig
from training.evaluation.metrics import Ranks


def test_a_row_is_the_base_with_its_departures(suite: Suite) -> None:
    config = suite.build_config(suite.row("degree_2"), seed=5)
    assert config.encoder == SelfAttentionConfig(
        dim=8,
        layers=1,
        feed_forward=8,
        dropout=0.1,
        max_history=6,
        time_encoding=MercerConfig(periods=3, degree=2),
    )
    assert config.fit.seed == 5
    assert config.fit.epochs == 2


def test_another_kind_replaces_that_of_the_base(suite: Suite) -> None:
    encoder = suite.build_config(suite.row("positional"), seed=0).encoder
    assert isinstance(encoder, SelfAttentionConfig)
    assert encoder.time_encoding == PositionalConfig(frequencies=4)
    assert encoder.feed_forward == 8
    assert suite.build_config(suite.row("counts"), seed=0).fit.loss == BCEConfig()


def test_another_encoder_inherits_only_fields_that_it_has(suite: Suite) -> None:
    counts = suite.row("counts")
    kept = suite.merge_settings(counts, 0)["encoder"]
    assert kept == {"kind": "popularity", "dim": 1, "dropout": 0.1, "max_history": 6}
    assert suite.build_config(counts, 0).encoder == PopularityConfig(max_history=6)


def test_a_suite_has_one_default(tmp_path: Path) -> None:
    text = SUITE.replace('name = "mercer"', 'name = "mercer"\nrole = "default"')
    two = text.replace('name = "positional"', 'name = "positional"\nrole = "default"')
    with pytest.raises(
        TrainingError, match=r"one default, .* got \['mercer', 'positional'\]; give"
    ):
        suite_in(tmp_path, two)


def test_a_row_with_an_unknown_encoder_field_is_named(suite: Suite) -> None:
    encoder = {"kind": "popularity", "dim": 1, "dropout": 0.3}
    row = suite.row("counts").model_copy(update={"encoder": encoder})
    with pytest.raises(TrainingError, match=r"row counts of suite tiny .* encoder.*dropout"):
        suite.build_config(row, 0)


def test_a_row_of_an_unknown_kind_is_named(tmp_path: Path) -> None:
    suite = suite_in(tmp_path, SUITE.replace('"popularity"', '"crystal_ball"'))
    with pytest.raises(TrainingError, match=r"row counts .* 'crystal_ball' .* is not known"):
        suite.build_config(suite.row("counts"), 0)
    assert suite.build_config(suite.row("mercer"), 0)


def test_a_misspelt_kind_has_a_hint(tmp_path: Path) -> None:
    suite = suite_in(tmp_path, SUITE.replace('"popularity"', '"popularty"'))
    with pytest.raises(TrainingError, match="did you mean 'popularity'"):
        suite.build_config(suite.row("counts"), 0)


def test_a_row_without_an_unknown_setting_is_refused(suite: Suite) -> None:
    for setting in ("wlde", "encoder.time_encoding.periodz", "fit.epochs.more"):
        row = suite.row("mercer").model_copy(update={"without": (setting,)})
        with pytest.raises(TrainingError, match=f"row mercer .* without {setting}, which is none"):
            suite.build_config(row, 0)


def test_a_setting_without_a_choice_is_not_inherited(suite: Suite) -> None:
    row = suite.row("counts").model_copy(update={"encoder": {"kind": "popularity"}})
    assert suite.build_config(row, 0).encoder.dim == 1


def test_labels_and_seeds_do_not_change_the_digest(suite: Suite) -> None:
    row = suite.row("mercer")
    relabelled = row.model_copy(update={"label": "Another", "published": None, "seeds": (0,)})
    assert digest(suite.merge_settings(relabelled, 0)) == digest(suite.merge_settings(row, 0))
    assert digest(suite.merge_settings(row, 1)) != digest(suite.merge_settings(row, 0))


def test_seeds_are_a_list_or_a_count(tmp_path: Path) -> None:
    suite = suite_in(tmp_path, SUITE.replace("seeds = [0, 3]", "seeds = 3"))
    assert suite.row("mercer").seeds == (0, 1, 2)
    assert suite.row("positional").seeds == (0,)


def test_a_suite_shortened_is_short_in_every_row(tmp_path: Path) -> None:
    longer = 'class = "order only"\nfit.epochs = 40\nencoder.time_encoding'
    suite = suite_in(tmp_path, SUITE.replace('class = "order only"\nencoder.time_encoding', longer))
    assert suite.build_config(suite.row("positional"), 0).fit.epochs == 40
    shortened = suite.shorten(1)
    assert shortened.build_config(shortened.row("positional"), 0).fit.epochs == 1
    assert shortened.build_config(shortened.row("mercer"), 0).fit.epochs == 1


def test_the_base_is_left_as_it_was(suite: Suite) -> None:
    before = digest(suite.base)
    suite.merge_settings(suite.row("degree_2"), 0)
    suite.shorten(1)
    assert digest(suite.base) == before


def test_tables_are_merged_to_any_depth() -> None:
    base = {"a": {"b": {"c": 1, "d": 2}, "e": 3}}
    assert merge(base, {"a": {"b": {"c": 9}}}) == {"a": {"b": {"c": 9, "d": 2}, "e": 3}}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "positional"', 'name = "mercer"', "distinct names, .* has .'mercer'. twice"),
        ('label = "Counts"', 'label = "Mercer"', "distinct labels, .* has .'Mercer'. twice"),
        ('class = "order only"', 'class = "everything"', "tiny.toml is not a suite"),
        ('class = "order only"', 'class = "everything"', "row positional: class: input should be"),
        ('label = "Counts"', 'label = "Counts"\nrole = "control"', "row counts changes the base"),
        ('label = "Counts"', 'label = "Counts"\nsearch.x = []', "row counts: search.x: "),
        ('plot = "accuracy"', 'plot = "accuracy"\nsmell = 3', "smell"),
        ('name = "counts"', 'name = "counting"', "references .* but tiny.toml has rows"),
        ("title =", "title", "tiny.toml is not a suite"),
        (
            "title =",
            "tilte =",
            r"title: it is missing, tilte: .* \(did you mean 'title'\?\); correct it$",
        ),
        (
            'label = "Counts"',
            'label = "Counts"\nrole = "foo"',
            "role: .* but got 'foo'; correct it$",
        ),
        ("seeds = [0, 3]", "seeds = [1, 1]", r"row mercer: seeds: .*distinct, but got \[1, 1\]"),
        ("seeds = [0, 3]", "seeds = -1", r"row mercer: seeds: "),
        ("seeds = [0, 3]", "seeds = [-1]", r"row mercer: seeds\.0: "),
        ("seeds = [0, 3]", "seeds = 1000000000", "row mercer: seeds: .*at most 100 "),
        ("seeds = [0, 3]", 'search = { "fit.seed" = [1] }', r"mercer chooses \['fit\.seed'\]"),
        (
            "seeds = [0, 3]",
            'trials = [{ fit = { monitor = "mrr" } }]',
            r"chooses \['fit\.monitor'\]; set them in its table fit",
        ),
        ('title = "A', 'title = "A | 9', "tiny.toml is not a suite: title: "),
        ('label = "Counts"', 'label = "Counts | 9"', "row counts: label: "),
        ('label = "Counts"', 'label = "Counts\\n9"', "row counts: label: "),
        ("seeds = [0, 3]", "seeds = true", "row mercer: seeds: .* but got True"),
        ("seeds = [0, 3]", "seeds = [true]", r"row mercer: seeds\.0: .* but got True"),
        ("seeds = [0, 3]", "split.test = 0.3", "row mercer: split: there is no such setting here"),
        (
            "seeds = [0, 3]",
            "data.exclude_seen = true",
            "mercer: data: there is no such setting here",
        ),
        ("seeds = [0, 3]", 'without = ["split"]', r"row mercer changes \['split'\]"),
        ("seeds = [0, 3]", 'search = { "split.test" = [0.3] }', r"changes \['split\.test'\]"),
        ("seeds = [0, 3]", 'trials = [{ "data.x" = 1 }]', r"row mercer changes \['data\.x'\]"),
        (
            '"mrr"]',
            '"mrr", "recall@7"]',
            r"metrics of reports, but got \['recall@7'\]; choose from",
        ),
        ('plot = "accuracy"', 'plot = "smell"', r"plot names metrics .* but got \['smell'\]"),
        ('plot = "accuracy"', 'plot = "ndcg@10_sampled100"', "plot names metrics of reports"),
        ('plot = "a', 'headline = "after_a_gap"\nplot = "recall@10"\n#', "plot names metrics"),
        ("[[curves]]", '[[panels]]\ntitle = "P"\nrows = ["x"]\n[[curves]]', r"'P' has \['x'\]"),
        ('curve = "degree"', 'curve = "width"', r"row degree_2 is on 'width'; .*\['degree'\]"),
    ],
)
def test_an_invalid_suite_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        suite_in(tmp_path, SUITE.replace(old, new))


def test_an_invalid_row_is_not_also_a_lack_of_rows(tmp_path: Path) -> None:
    rows = SUITE.index("[[rows]]")
    row = '[[rows]]\nname = "only"\nlabel = "Only"\nclass = "order"\n'
    with pytest.raises(TrainingError) as raised:
        suite_in(tmp_path, SUITE[:rows] + row)
    assert str(raised.value) == (
        "tiny.toml is not a suite: row only: class: input should be 'order only', 'intervals in "
        "the history' or 'query time given', but got 'order'; correct it"
    )


def test_the_metrics_of_a_suite_are_those_of_reports() -> None:
    first = np.array([1])
    ranks = Ranks(first, np.array([0]), 1, sampled=first)
    assert {*METRICS} == {*ranks.summarise()} - {"questions"}
    assert all(ranks.per_question(metric) == [1] for metric in RANK_METRICS)
    assert {*AFTER_GAP_METRICS} < {*RANK_METRICS}


def test_a_broken_recommended_recipe_is_named(tmp_path: Path) -> None:
    folder = folder_with_suite(tmp_path)
    (folder / "recommended").mkdir()
    (folder / "recommended" / "tiny.toml").write_text("[fit")
    with pytest.raises(
        TrainingError, match=r"recommended/tiny\.toml is not: .* --suite tiny --recommend"
    ):
        Suite.read(folder / "suites" / "tiny.toml")


def test_an_unknown_suite_or_row_lists_the_known_ones(suite: Suite, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"\['tiny'\].*'huge'"):
        Suite.read(tmp_path / "suites" / "huge.toml")
    with pytest.raises(TrainingError, match=r"'degree_2'\].*'mercator'"):
        suite.row("mercator")
