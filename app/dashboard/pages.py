"""The dashboard's own files, kept in memory: a page is some forty small modules."""

import hashlib
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

# Has V8 compile a whole script beside the main thread, which a large one would hold up for long.
# It must be the first thing in the file; other engines take it for the comment that it is.
_COMPILE_AT_ONCE = b"//# allFunctionsCalledOnLoad\n"


@dataclass(frozen=True, slots=True)
class _Kept:
    modified_at: int
    etag: str
    content: bytes


@final
class Pages:
    """Answers the files that lay in a folder when the process began; changes of them are seen.

    Reading a file costs a thread three times over, which is most of what a small one costs.
    """

    def __init__(self, folder: Path, libraries: Mapping[str, Path]) -> None:
        """`libraries` are large scripts that lie elsewhere, by the names they are served under."""
        found = (file for file in folder.rglob("*") if file.is_file())
        # Only names that were listed are ever turned into paths.
        own = {file.relative_to(folder).as_posix(): file for file in found}
        self._files = {**own, **libraries}
        self._libraries = frozenset(libraries)
        self._kept: dict[str, _Kept] = {}

    def answer(self, path: str, request: Request) -> Response:
        """A file, or 304 where the caller has it already.

        Raises:
            HTTPException: 404, if there is none of that name.
        """
        file = self._files.get(path)
        if file is None:
            raise HTTPException(404)
        kept = self._fresh(path, file)
        headers = {"ETag": kept.etag}
        if kept.etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        media_type = mimetypes.guess_type(path)[0]
        return Response(kept.content, media_type=media_type, headers=headers)

    def _fresh(self, path: str, file: Path) -> _Kept:
        modified_at = file.stat().st_mtime_ns
        kept = self._kept.get(path)
        if kept is None or kept.modified_at != modified_at:
            content = file.read_bytes()
            if path in self._libraries:
                content = _COMPILE_AT_ONCE + content
            digest = hashlib.sha256(content).hexdigest()[:32]
            kept = self._kept[path] = _Kept(modified_at, f'"{digest}"', content)
        return kept
