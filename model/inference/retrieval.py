"""The best rows of the catalog for one user vector, before repeat scores are added."""

from dataclasses import dataclass
from typing import Protocol, final

import numpy as np

from model.bundle.index import ItemIndex
from model.catalog import PADDING_ROW
from model.inference.selection import Rows, Scores, Selection


class Retriever(Protocol):
    """Finds the best rows of the catalog for one user vector."""

    def search(self, n: int, selection: Selection) -> tuple[Rows, Scores]:
        """Find the `n` best permitted rows, best first, with their scores.

        Returns fewer only where no more are permitted.
        """
        ...

    def score(self, rows: Rows) -> Scores:
        """Compute the scores of some rows, equal to those of `search`."""
        ...


@final
@dataclass(frozen=True)
class IndexRetriever:
    """Searches an index.

    Attributes:
        user: as `Recommender.index_queries` returns it.
    """

    index: ItemIndex
    user: Scores

    def search(self, n: int, selection: Selection) -> tuple[Rows, Scores]:
        """Find the `n` best permitted rows, best first, with their scores."""
        return self.index.search(
            self.user, n, exclude=selection.excluded, allowed=selection.allowed
        )

    def score(self, rows: Rows) -> Scores:
        """Compute the scores of some rows."""
        return self.index.score(self.user, rows)


@final
@dataclass(frozen=True)
class ExhaustiveRetriever:
    """Selects from the scores of all rows, where no index holds the popularity of a query time.

    An index would have to be built for it, which takes longer than scoring every row once.

    Attributes:
        scores: per catalog row, padding included.
    """

    scores: Scores

    def search(self, n: int, selection: Selection) -> tuple[Rows, Scores]:
        """Find the `n` best permitted rows, best first, with their scores."""
        scores = self.scores.copy()
        scores[PADDING_ROW] = -np.inf
        scores[selection.excluded] = -np.inf
        if selection.allowed is not None:
            scores[~selection.allowed] = -np.inf
        nth = max(len(scores) - n, 0)
        least = np.partition(scores, nth)[nth] if n else np.inf
        candidates = np.flatnonzero((scores >= least) & (scores > -np.inf))
        # Equal scores keep the order of the catalog, as FAISS does.
        best = candidates[np.lexsort((candidates, -scores[candidates]))[:n]]
        return best, scores[best]

    def score(self, rows: Rows) -> Scores:
        """Select the scores of some rows."""
        return self.scores[rows]
