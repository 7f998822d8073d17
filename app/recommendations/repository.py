"""Impressions in the database: the recommendations that users were shown, and their clicks."""

from collections.abc import Sequence
from typing import final

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from app.db.clicks import list_clicked_versions, match_click
from app.db.erasures import ErasureRepository
from app.db.insert import insert_into
from app.db.tables import IS_UNCOUNTED, StoredEvent, StoredRecommendation
from app.serving.impressions import Impression


@final
class ImpressionRepository:
    """Adds and deletes impressions within a transaction that the caller owns."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, impressions: Sequence[Impression]) -> tuple[str, ...]:
        """Store impressions, except those of users who have been erased since.

        Returns:
            The model version of each click that arrived before its impression.
        """
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
            return ()
        statement = insert_into(self._session, StoredRecommendation).on_conflict_do_nothing(
            index_elements=["recommendation_id"]
        )
        if self._session.get_bind().dialect.name == "sqlite":
            # Triggers count per row. To write the text of one statement takes ten times as long.
            self._session.connection().execute(statement, rows)
        else:
            # Triggers count per statement.
            self._session.execute(statement.values(rows))
        column = StoredRecommendation.recommendation_id
        return list_clicked_versions(
            self._session, column, [impression.recommendation_id for impression in impressions]
        )

    def delete_before(self, at: int, most: int) -> int:
        """Delete at most `most` impressions from before an instant; return their number."""
        expired = (
            select(StoredRecommendation.recommendation_id)
            .where(StoredRecommendation.at < at)
            .order_by(StoredRecommendation.at)
            .limit(most)
        )
        deleted = self._session.execute(
            delete(StoredRecommendation)
            .where(StoredRecommendation.recommendation_id.in_(expired))
            .returning(StoredRecommendation.recommendation_id)
        )
        return len(deleted.all())

    def count_uncounted(self, most: int) -> int:
        """Count at most `most` impressions from before the counts were kept; return their number.

        Triggers add them to the counts.
        """
        uncounted = select(StoredRecommendation.recommendation_id).where(IS_UNCOUNTED).limit(most)
        click = (
            select(StoredEvent.at)
            .where(match_click(self._session))
            .correlate(StoredRecommendation)
            .limit(1)
            .scalar_subquery()
        )
        counted = self._session.execute(
            update(StoredRecommendation)
            .where(StoredRecommendation.recommendation_id.in_(uncounted))
            .values(is_counted=True, clicked_at=click)
            .returning(StoredRecommendation.recommendation_id)
            .execution_options(synchronize_session=False)
        )
        return len(counted.all())
