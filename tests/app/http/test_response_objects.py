"""Objects that a response holds by the dozen."""

import pytest

from app.attention.schemas import AttentionAtInstant, SweptEvent
from app.recommendations.schemas import AttendedEvent, RecommendedItem, ScorePart, ScoreTerm

BY_THE_DOZEN = (
    AttendedEvent,
    AttentionAtInstant,
    RecommendedItem,
    ScorePart,
    ScoreTerm,
    SweptEvent,
)


@pytest.mark.parametrize("model", BY_THE_DOZEN)
def test_they_are_quick_to_make_and_to_write(model: type) -> None:
    assert "__setattr__" not in vars(model), "a frozen object takes twice as long to make"
    assert "__slots__" not in vars(model), "orjson writes an object with slots four times slower"
