"""The positional control."""

from model.time_encodings.bochner_nonparametric import BochnerNonparametricConfig
from model.time_encodings.positional import PositionalConfig
from tests.contracts.time_encoding import TimeEncodingContract


class TestPositional(TimeEncodingContract):
    config = PositionalConfig(frequencies=6)

    def test_its_domain_is_the_position(self) -> None:
        assert self.config.build().domain == "position"

    def test_size_equals_that_of_the_bochner_encoding(self) -> None:
        control, controlled = self.config.build(), BochnerNonparametricConfig(frequencies=6).build()
        assert control.dim == controlled.dim
        assert [part.shape for part in control.parameters()] == [
            part.shape for part in controlled.parameters()
        ]

    def test_paper_code_has_no_features(self) -> None:
        assert PositionalConfig.from_paper_code().build().dim == 0
