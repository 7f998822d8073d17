from model.time_encodings.bochner_nonparametric import BochnerNonparametricConfig
from model.time_encodings.positional import PositionalConfig
from tests.contracts.time_encoding import TimeEncodingContract


class TestPositional(TimeEncodingContract):
    config = PositionalConfig(frequencies=6)

    def test_it_reads_the_order_of_events_and_not_their_times(self) -> None:
        assert self.config.build().reads == "position"

    def test_it_is_as_wide_and_has_as_many_parameters_as_the_encoding_it_controls_for(self) -> None:
        control, controlled = self.config.build(), BochnerNonparametricConfig(frequencies=6).build()
        assert control.dim == controlled.dim
        assert [part.shape for part in control.parameters()] == [
            part.shape for part in controlled.parameters()
        ]

    def test_the_authors_leave_order_to_the_table_of_positions(self) -> None:
        assert PositionalConfig.paper_code().build().dim == 0
