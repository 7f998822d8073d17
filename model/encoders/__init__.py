"""The union of all encoder configurations; a new encoder is added here."""

from typing import Annotated

from pydantic import Field

from model.encoders.basket_markov import BasketMarkovConfig
from model.encoders.caser import CaserConfig
from model.encoders.counting import CountingConfig
from model.encoders.din import DINConfig
from model.encoders.gru4rec import GRU4RecConfig
from model.encoders.lstm import LSTMConfig
from model.encoders.markov import MarkovConfig
from model.encoders.personal_frequency import PersonalFrequencyConfig
from model.encoders.popularity import PopularityConfig
from model.encoders.rmtpp import RMTPPConfig
from model.encoders.rnn_attention import RNNAttentionConfig
from model.encoders.sasrec import SASRecConfig
from model.encoders.self_attention import SelfAttentionConfig
from model.encoders.shan import SHANConfig
from model.encoders.slrc import SLRCConfig
from model.encoders.taiw import TAIWConfig
from model.encoders.tifu_knn import TIFUKNNConfig
from model.encoders.time_joint import TimeJointConfig
from model.encoders.time_lstm import TimeLSTMConfig
from model.encoders.tisasrec import TiSASRecConfig
from model.encoders.transrec import TransRecConfig
from model.encoders.up_cf import UPCFConfig

EncoderConfig = Annotated[
    BasketMarkovConfig
    | CaserConfig
    | CountingConfig
    | DINConfig
    | GRU4RecConfig
    | LSTMConfig
    | MarkovConfig
    | PersonalFrequencyConfig
    | PopularityConfig
    | RMTPPConfig
    | RNNAttentionConfig
    | SASRecConfig
    | SelfAttentionConfig
    | SHANConfig
    | SLRCConfig
    | TAIWConfig
    | TIFUKNNConfig
    | TimeJointConfig
    | TimeLSTMConfig
    | TiSASRecConfig
    | TransRecConfig
    | UPCFConfig,
    Field(discriminator="kind"),
]
