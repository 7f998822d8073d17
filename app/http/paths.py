"""Ids in paths.

A slash that belongs to an id is percent-encoded in a path, whatever the method: `/v1/items/a%2Fb`
names the item `a/b`. A plain slash always separates resources, so that no path can be read as a
sub-resource and as an id at once: `DELETE /v1/users/u1/recommendations` names no user.
"""

import re
from urllib.parse import unquote

from starlette.convertors import Convertor, register_url_convertor
from starlette.routing import Route
from starlette.types import Scope

# Percent-decoding yields no lone surrogate, so no path contains this character by itself.
_ENCODED_SLASH = "\udc2f"
_PERCENT_SLASH = re.compile("%2f", re.IGNORECASE)


class IdConvertor(Convertor[str]):
    """The convertor `id`: any text without a plain slash, line breaks included.

    Characters that an id must not contain are refused by validation, which names the rule; a path
    that does not match would be reported as unknown instead.
    """

    regex = r"[^/]*"

    def convert(self, value: str) -> str:
        """Return the id, with its encoded slashes restored."""
        return value.replace(_ENCODED_SLASH, "/")

    def to_string(self, value: str) -> str:
        """Return the id as it stands in a path."""
        return value


register_url_convertor("id", IdConvertor())


def keep_encoded_slashes(scope: Scope, route: Route) -> Scope:
    """Return the scope with percent-encoded slashes kept apart from plain ones in its path.

    Only what follows the fixed beginning of the route's path is affected, and only if the route has
    an id: other convertors would return the placeholder of the slash.
    """
    if not any(isinstance(convertor, IdConvertor) for convertor in route.param_convertors.values()):
        return scope
    raw_path = scope.get("raw_path", b"").decode("latin-1")
    if not _PERCENT_SLASH.search(raw_path):
        return scope
    path = unquote(_PERCENT_SLASH.sub(_ENCODED_SLASH, raw_path))
    prefix = route.path.partition("{")[0]
    if path[: len(prefix)].replace(_ENCODED_SLASH, "/") == prefix:
        path = prefix + path[len(prefix) :]
    return {**scope, "path": path}
