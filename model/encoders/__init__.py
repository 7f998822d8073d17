"""The encoders, as one union: add a file, then its config here."""

from model.encoders.self_attention import SelfAttentionConfig

EncoderConfig = SelfAttentionConfig
