"""The encoders, as one union: add a file, then its config here."""

from typing import Annotated

from pydantic import Field

from model.encoders.self_attention import SelfAttentionConfig

EncoderConfig = Annotated[SelfAttentionConfig, Field(discriminator="kind")]
