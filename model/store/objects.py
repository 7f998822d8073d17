"""Objects below a prefix of an S3 bucket: conditional writes, whole reads, listings."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, final

from model.errors import BundleError, KairosError

SCHEME = "s3://"
_URL = re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(?P<prefix>[^?#]*))?")
_MOST_SMALL_BYTES = 65_536
_CHUNK_BYTES = 16 * 1024 * 1024
_PARTS_BYTES = 64 * 1024 * 1024
_CONNECT_SECONDS = 2.0
_READ_SECONDS = 5.0
_ATTEMPTS = 2
_CONFLICTS = frozenset({"PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey"})


class ObjectConflictError(Exception):
    """An object is not the one that a conditional write was to replace."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """The content of a small object, and the tag that changes whenever the object does."""

    content: bytes
    etag: str


@dataclass(frozen=True, slots=True)
class ListedObject:
    """An object in a listing.

    Attributes:
        modified_at: when it was written, epoch seconds of the object store.
    """

    etag: str
    size: int
    modified_at: float


@final
class ObjectStorage:
    """The objects below one prefix. Every method blocks; requests end within seconds.

    Credentials, region and endpoint are those of the environment, as for every client of AWS:
    `AWS_ACCESS_KEY_ID`, `AWS_DEFAULT_REGION`, `AWS_ENDPOINT_URL`, or the role of the machine.

    Attributes:
        url: the prefix, without a slash at its end.

    Raises:
        OSError: from every method, if the object store does not answer or refuses.
    """

    def __init__(self, url: str) -> None:
        """Connect to nothing yet.

        Raises:
            BundleError: if the URL is none of an S3 bucket.
            KairosError: if the optional package is not installed.
        """
        found = _URL.fullmatch(url)
        if found is None:
            raise BundleError(
                f"an object store is named like s3://bucket/prefix, but got {url[:200]!r}; use the "
                "name of a bucket, of 3 to 63 characters; other kinds are not supported"
            )
        if find_spec("s3fs") is None:
            raise KairosError(
                f"a store in {url} needs s3fs, but it is not installed; pip install 'kairos[scale]'"
            )
        self._bucket = found["bucket"]
        self._prefix = (found["prefix"] or "").strip("/")
        self.url = "/".join(part for part in (f"{SCHEME}{self._bucket}", self._prefix) if part)
        self._opened: Any = None

    def read(self, name: str) -> StoredObject | None:
        """Read a small object; None if there is none."""
        from fsspec.asyn import sync  # noqa: PLC0415 - an optional package

        files = self._files()

        async def get() -> StoredObject:
            found = await files._call_s3("get_object", Bucket=self._bucket, Key=self._key(name))
            # Unknown where a proxy sends it in chunks, whose last one says that it is complete.
            length = found.get("ContentLength")
            most = _MOST_SMALL_BYTES if length is None else min(length, _MOST_SMALL_BYTES)
            content = b""
            async with found["Body"] as body:
                # One read returns what has arrived so far.
                while chunk := await body.read(most - len(content)):
                    content += chunk
            if length is not None and len(content) < most:
                raise ConnectionError(f"{name} ended after {len(content)} of {most} bytes")
            return StoredObject(content, found["ETag"])

        with _translate_errors():
            try:
                stored: StoredObject = sync(files.loop, get)
            except FileNotFoundError as error:
                if _get_code(error) != "NoSuchKey":  # the whole bucket is missing
                    raise
                return None
        return stored

    def write(self, name: str, content: bytes, *, replaces: StoredObject | None) -> StoredObject:
        """Write an object in place of the one that was read, or as a new one.

        Raises:
            ObjectConflictError: if it is another one by now.
        """
        condition = {"IfNoneMatch": "*"} if replaces is None else {"IfMatch": replaces.etag}
        with _translate_errors():
            try:
                written = self._files().call_s3(
                    "put_object",
                    Bucket=self._bucket,
                    Key=self._key(name),
                    Body=content,
                    **condition,
                )
            except OSError as error:
                if _get_code(error) not in _CONFLICTS:
                    raise
                # The response to a write may have been lost, and the repetition refused.
                found = self.read(name)
                if found is None or found.content != content:
                    raise ObjectConflictError(name) from error
                return found
        return StoredObject(content, written["ETag"])

    def upload(self, file: Path, name: str) -> None:
        """Write a file as an object, in place of any."""
        with _translate_errors():
            self._files().put_file(
                str(file), f"{self._bucket}/{self._key(name)}", chunksize=_PARTS_BYTES
            )

    def download(self, name: str, file: Path, keep_on: Callable[[], bool]) -> None:
        """Write an object to a new file, in parts.

        Args:
            keep_on: asked before each part.

        Raises:
            FileNotFoundError: if there is no such object.
            InterruptedError: if it is not to be kept on.
        """
        path = f"{self._bucket}/{self._key(name)}"
        with _translate_errors(), file.open("xb") as stream:
            size = self._files().info(path)["size"]
            for start in range(0, size, _CHUNK_BYTES):
                if not keep_on():
                    raise InterruptedError(f"{name} was not downloaded to its end")
                end = min(start + _CHUNK_BYTES, size)
                stream.write(self._files().cat_file(path, start=start, end=end))

    def list_below(self, name: str) -> dict[str, ListedObject]:
        """List the objects below a name, with the rest of their names."""
        below = f"{self._bucket}/{self._key(name)}/"
        with _translate_errors():
            found = self._files().find(below, detail=True)
        return {
            path.removeprefix(below): ListedObject(
                entry["ETag"], entry["size"], entry["LastModified"].timestamp()
            )
            for path, entry in found.items()
            if path.startswith(below)
        }

    def delete(self, name: str) -> None:
        """Delete an object, if there is one."""
        with _translate_errors(), suppress(FileNotFoundError):
            self._files().call_s3("delete_object", Bucket=self._bucket, Key=self._key(name))

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name

    def _files(self) -> Any:
        if self._opened is None:
            import s3fs  # noqa: PLC0415 - an optional package, and slow

            files = s3fs.S3FileSystem(
                skip_instance_cache=True,
                use_listings_cache=False,
                config_kwargs={
                    "connect_timeout": _CONNECT_SECONDS,
                    "read_timeout": _READ_SECONDS,
                    "retries": {"total_max_attempts": _ATTEMPTS},
                },
            )
            files.retries = 1  # those of the line above
            self._opened = files
        return self._opened


def _get_code(error: OSError) -> str | None:
    """Return the code with which the object store refused a request; None if it did not."""
    response = getattr(error.__cause__, "response", None)
    return response.get("Error", {}).get("Code") if isinstance(response, dict) else None


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Translate failures of the client into OSError, which those of the object store are."""
    try:
        yield
    except (OSError, KairosError, ObjectConflictError):
        raise
    except Exception as error:  # of botocore, aiohttp or asyncio: an optional package has no types
        raise ConnectionError(f"the object store does not answer ({error})") from error
