"""Users, as their events show them."""

from datetime import datetime

from kairos_client.answers.recommendations import RecommendationAnswer
from kairos_client.answers.users import ErasedUser, NextTimeAnswer, UserHistory, UserList
from kairos_client.calls import Again, Call, fetch, reading
from kairos_client.wire import address, query

_OTHER_OPERATIONS = ("/next-time", "/recommendations")


def list_users(prefix: str | None = None, *, limit: int | None = None) -> Call[UserList]:
    """Users with stored events, in order of their ids."""
    asked = query({"prefix": prefix, "limit": limit})
    return fetch("list_users", "/v1/users" + asked, UserList)


def read_user(user_id: str, *, limit: int | None = None) -> Call[UserHistory]:
    """The newest stored events of a user; one nobody has heard of simply has none."""
    path = address("/v1/users/{}", user_id, ambiguous=_OTHER_OPERATIONS)
    return fetch("read_user", path + query({"limit": limit}), UserHistory)


def read_next_time(user_id: str, *, at: datetime | None = None) -> Call[NextTimeAnswer]:
    """When does this user come back, given that they have not until `at` (now)?"""
    path = address("/v1/users/{}/next-time", user_id)
    return fetch("read_next_time", path + query({"at": at}), NextTimeAnswer)


def recommend_to_user(
    user_id: str, *, n: int | None = None, at: datetime | None = None
) -> Call[RecommendationAnswer]:
    """The simple case of `recommend`: the stored history, and no conditions."""
    path = address("/v1/users/{}/recommendations", user_id)
    return fetch("recommend_to_user", path + query({"n": n, "at": at}), RecommendationAnswer)


def erase_user(user_id: str) -> Call[ErasedUser]:
    """Forget a user: every event and every record of what was shown.

    Erasing again is safe, so a lost answer is asked for again; the counts are then of that time.
    """
    path = address("/v1/users/{}", user_id)
    return Call("erase_user", "DELETE", path, reading(ErasedUser), Again.SAFELY)
