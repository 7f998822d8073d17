"""Impressions in the database: the recommendations that users were shown."""

from collections.abc import Sequence
from typing import final

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.db.erasures import ErasureRepository
from app.db.insert import insert_into
from app.db.tables import StoredRecommendation
from app.serving.impressions import Impression


@final
class ImpressionRepository:
    """Adds and deletes impressions within a transaction that the caller owns."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, impressions: Sequence[Impression]) -> None:
        """Store impressions, except those of users who have been erased since."""
        erasures = ErasureRepository(self._session).find_erasures(
            impressions, adding_to=StoredRecommendation
        )
        rows = [
            {
                "recommendation_id": impression.recommendation_id,
                "user_id": impression.user_id,
                "model_version": impression.model_version,
                "at": impression.at,
                "fallback": impression.fallback,
                "item_ids": list(impression.item_ids),
            }
            for impression, until in zip(impressions, erasures, strict=True)
            if until is None
        ]
        if not rows:
            return
        statement = insert_into(self._session, StoredRecommendation)
        self._session.execute(
            statement.on_conflict_do_nothing(index_elements=["recommendation_id"]), rows
        )

    def delete_before(self, at: int, most: int) -> int:
        """Delete up to `most` impressions from before an instant; return their number."""
        expired = (
            select(StoredRecommendation.recommendation_id)
            .where(StoredRecommendation.at < at)
            .limit(most)
        )
        deleted = self._session.execute(
            delete(StoredRecommendation)
            .where(StoredRecommendation.recommendation_id.in_(expired))
            .returning(StoredRecommendation.recommendation_id)
        )
        return len(deleted.all())
