"""Every method of docs/models.md as the settings of a small run."""

from collections.abc import Mapping
from typing import Any, get_args

from model.encoders import EncoderConfig
from model.time_encodings import TimeEncodingConfig
from model.time_encodings.bochner_inverse_cdf import BochnerInverseCDFConfig
from model.time_encodings.bochner_nonparametric import BochnerNonparametricConfig
from model.time_encodings.bochner_normal import BochnerNormalConfig
from model.time_encodings.mercer import MercerConfig
from model.time_encodings.nonstationary import NonstationaryConfig
from model.time_encodings.time2vec import Time2VecConfig
from training.config import RunConfig

Settings = Mapping[str, Any]

SMALL = {"dim": 8, "max_history": 6}


def _encoder(kind: str, **settings: object) -> dict[str, Any]:
    return {"encoder": {"kind": kind, **SMALL, **settings}}


def _attending(time_encoding: Settings, **settings: object) -> dict[str, Any]:
    return _encoder(
        "self_attention",
        heads=2,
        layers=2,
        feed_forward=8,
        time_encoding=dict(time_encoding),
        **settings,
    )


def _fitted(settings: dict[str, Any], **fit: object) -> dict[str, Any]:
    return {**settings, "fit": fit}


MERCER = {"kind": "mercer", "periods": 3, "degree": 2}
TIME2VEC = {"kind": "time2vec", "frequencies": 4}
MODULATION = {"groups": 3}
REGULARISED = {"weight": 0.1}

METHODS: dict[str, dict[str, Any]] = {
    # Time encodings, in our self-attention encoder
    "positional": _attending({"kind": "positional", "frequencies": 4}),
    "bochner_normal": _attending({"kind": "bochner_normal", "frequencies": 4}),
    "bochner_log_normal": _attending({"kind": "bochner_normal", "form": "log", "frequencies": 4}),
    "bochner_invcdf_mlp": _attending(
        {"kind": "bochner_inverse_cdf", "map": "mlp", "frequencies": 4}
    ),
    "bochner_invcdf_mlp_residual": _attending(
        {"kind": "bochner_inverse_cdf", "map": "mlp_residual", "frequencies": 4}
    ),
    "bochner_invcdf_maf": _attending(
        {"kind": "bochner_inverse_cdf", "map": "maf", "frequencies": 4}
    ),
    "bochner_invcdf_real_nvp": _attending(
        {"kind": "bochner_inverse_cdf", "map": "real_nvp", "frequencies": 4}
    ),
    "bochner_nonparametric": _attending({"kind": "bochner_nonparametric", "frequencies": 4}),
    "bochner_nonparametric_code": _attending(
        {"kind": "bochner_nonparametric", "form": "code", "frequencies": 4}
    ),
    "mercer_concat": _attending(MERCER),
    "mercer_sum": _attending(MERCER | {"form": "sum"}),
    "time2vec": _attending(TIME2VEC),
    "nonstationary": _attending({"kind": "nonstationary"}),
    "damped_rotation": _attending({"kind": "damped_rotation", "frequencies": 4}),
    "rotary": _attending({"kind": "rotary"}, position_table=False),
    "rotary_by_head": _attending({"kind": "rotary", "fusion": "split_by_head"}),
    "rotary_early": _attending({"kind": "rotary", "fusion": "early"}),
    "query_mlp": _attending(MERCER, query="mlp"),
    "mercer_flex": _attending(MERCER | {"form": "flex"}),
    # With the initial values of the authors' code
    "bochner_normal_paper_code": _attending(BochnerNormalConfig.from_paper_code(8).model_dump()),
    "bochner_invcdf_maf_paper_code": _attending(
        BochnerInverseCDFConfig.from_paper_code(8, "maf").model_dump()
    ),
    "bochner_nonparametric_paper_code": _attending(
        BochnerNonparametricConfig.from_paper_code(8).model_dump()
    ),
    "mercer_paper_code": _attending(MercerConfig.from_paper_code(4, 2).model_dump()),
    "time2vec_paper_code": _attending(Time2VecConfig.from_paper_code(4).model_dump()),
    "nonstationary_paper_code": _attending(NonstationaryConfig.from_paper_code().model_dump()),
    # Self-modulating attention
    "self_modulating": _attending(MERCER, modulation=MODULATION),
    "self_modulating_ctreg": _fitted(
        _attending(MERCER, modulation=MODULATION), continuous_time=REGULARISED
    ),
    "sasrec_modulated": _fitted(
        _encoder("sasrec", modulation=MODULATION), continuous_time=REGULARISED
    ),
    "sasrec_smlayer": _encoder("sasrec", modulation=MODULATION),
    "din_smlayer": _fitted(_encoder("din", modulation=MODULATION), loss={"kind": "bce"}),
    "din_modulated": _fitted(
        _encoder("din", modulation=MODULATION), loss={"kind": "bce"}, continuous_time=REGULARISED
    ),
    # Attention baselines
    "sasrec": _encoder("sasrec"),
    "sasrec_bce": _fitted(_encoder("sasrec"), loss={"kind": "bce"}),
    "sasrec_gbce": _fitted(_encoder("sasrec"), loss={"kind": "gbce", "negatives": 4}),
    "sasrec_plus": _encoder("sasrec", time_encoding=MERCER),
    "tisasrec": _encoder("tisasrec"),
    "tisasrec_to_query": _encoder("tisasrec", relation="to_query"),
    "shan": _encoder("shan"),
    "din": _fitted(_encoder("din"), loss={"kind": "bce"}),
    "rnn_attention": _encoder("rnn_attention"),
    # Repeats
    "slrc": _encoder("slrc"),
    "slrc_bpr": _fitted(_encoder("slrc"), loss={"kind": "bpr"}),
    # Recurrent
    "gru4rec": _encoder("gru4rec"),
    "lstm": _encoder("lstm"),
    "lstm_t": _encoder("lstm", interval={"kind": "log"}),
    "lstm_raw": _encoder("lstm", interval={"kind": "raw"}),
    "lstm_time2vec": _encoder("lstm", interval=TIME2VEC),
    "tlstm1": _encoder("time_lstm", gates=1),
    "tlstm1_time2vec": _encoder("time_lstm", gates=1, interval=TIME2VEC),
    "tlstm3": _encoder("time_lstm", gates=3),
    "tlstm3_time2vec": _encoder("time_lstm", gates=3, interval=TIME2VEC),
    # Point processes
    "rmtpp": _encoder("rmtpp"),
    "time_joint": _encoder("time_joint"),
    # Others
    "caser": _encoder("caser"),
    "transrec": _fitted(_encoder("transrec"), loss={"kind": "bpr"}),
    "popularity": {"encoder": {"kind": "popularity"}},
    "popularity_last_week": {"encoder": {"kind": "popularity", "window": "last_week"}},
    "markov": {"encoder": {"kind": "markov", "successors": 5}},
    "personal_frequency": {"encoder": {"kind": "personal_frequency"}},
    "counting": {"encoder": {"kind": "counting"}},
    "basket_markov": {"encoder": {"kind": "basket_markov"}},
    "tifu_knn": {"encoder": {"kind": "tifu_knn", "neighbours": 3}},
    "tifu_knn_code": {"encoder": {"kind": "tifu_knn", "form": "code", "neighbours": 3}},
    "up_cf": {"encoder": {"kind": "up_cf"}},
    "up": {"encoder": {"kind": "up_cf", "neighbours": 0}},
    "taiw": {"encoder": {"kind": "taiw", "neighbours": 5, "steps": 3}},
    "taiw_alone": {"encoder": {"kind": "taiw", "neighbours": 0, "steps": 3}},
}


def _unlisted() -> dict[str, dict[str, Any]]:
    """Return default settings for members that are not listed, so that new ones are tested."""
    listed = [method["encoder"] for method in METHODS.values()]
    encoders = kinds(EncoderConfig) - {encoder["kind"] for encoder in listed}
    attended = {encoder.get("time_encoding", {}).get("kind") for encoder in listed}
    return {kind: _encoder(kind) for kind in encoders} | {
        kind: _attending({"kind": kind}) for kind in kinds(TimeEncodingConfig) - attended
    }


def kinds(union: object) -> set[str]:
    """Return the kinds of a discriminated union."""
    annotated = get_args(union)[0]
    members = get_args(annotated) or (annotated,)
    return {str(member.model_fields["kind"].default) for member in members}


METHODS |= _unlisted()

ATTENDS = {
    name: settings["encoder"]["kind"]
    in {
        "counting",
        "self_attention",
        "sasrec",
        "tisasrec",
        "shan",
        "din",
        "rnn_attention",
        "slrc",
        "taiw",
    }
    for name, settings in METHODS.items()
}
"""Whether recommendations of the method can include attention."""

PREDICTS_NEXT_TIME = {"rmtpp", "time_joint"}
"""Methods that also predict the time of the next event."""


def recipe(method: str) -> RunConfig:
    """Build the configuration of a short run of one method."""
    settings = METHODS[method]
    fit = {"epochs": 1, "tokens": 200, "warmup_steps": 1, "monitor": "ndcg@10"}
    return RunConfig.model_validate(
        {
            "split": {"kind": "leave_one_out"},
            "profile_histories": 20,
            "export_encoder": False,
            **settings,
            "fit": fit | settings.get("fit", {}),
        }
    )
