"""Shown recommendations in the database."""

from collections.abc import Sequence
from typing import final

from sqlalchemy import delete
from sqlalchemy.orm import Session

from app.db.insert import insert_into
from app.db.tables import StoredRecommendation
from app.serving.impressions import Impression
from app.users.repository import ErasureRepository


@final
class RecommendationRepository:
    """Adds and forgets what was shown, in a transaction that belongs to the caller."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, answers: Sequence[Impression]) -> None:
        """Keep what was shown, but for what was shown to users who are erased by now."""
        rows = [
            {
                "recommendation_id": answer.recommendation_id,
                "user_id": answer.user_id,
                "model_version": answer.model_version,
                "at": answer.at,
                "fallback": answer.fallback,
                "item_ids": list(answer.item_ids),
            }
            for answer in answers
        ]
        erased = ErasureRepository(self._session).covering(rows, adding_to=StoredRecommendation)
        living = [row for row, until in zip(rows, erased, strict=True) if until is None]
        if not living:
            return
        statement = insert_into(self._session, StoredRecommendation)
        self._session.execute(
            statement.on_conflict_do_nothing(index_elements=["recommendation_id"]), living
        )

    def forget_before(self, at: int) -> int:
        """Forget what was shown before an instant; answers how much that was."""
        forgotten = self._session.execute(
            delete(StoredRecommendation)
            .where(StoredRecommendation.at < at)
            .returning(StoredRecommendation.recommendation_id)
        )
        return len(forgotten.all())
