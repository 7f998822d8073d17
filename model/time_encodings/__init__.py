"""The union of all time encoding configurations; a new encoding is added here."""

from typing import Annotated

from pydantic import Field

from model.time_encodings.bochner_inverse_cdf import BochnerInverseCDFConfig
from model.time_encodings.bochner_nonparametric import BochnerNonparametricConfig
from model.time_encodings.bochner_normal import BochnerNormalConfig
from model.time_encodings.damped_rotation import DampedRotationConfig
from model.time_encodings.mercer import MercerConfig
from model.time_encodings.nonstationary import NonstationaryConfig
from model.time_encodings.positional import PositionalConfig
from model.time_encodings.rotary import RotaryConfig
from model.time_encodings.time2vec import Time2VecConfig

TimeEncodingConfig = Annotated[
    BochnerInverseCDFConfig
    | BochnerNonparametricConfig
    | BochnerNormalConfig
    | DampedRotationConfig
    | MercerConfig
    | NonstationaryConfig
    | PositionalConfig
    | RotaryConfig
    | Time2VecConfig,
    Field(discriminator="kind"),
]
