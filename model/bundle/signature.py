"""Signatures of manifests, so that only bundles of those who hold a key are opened."""

import hashlib
import hmac
from collections.abc import Sequence
from pathlib import Path
from typing import final

from model.errors import BundleError, BundleKeyError

SIGNATURE = "manifest.sig"
_ALGORITHM = "hmac-sha256"
_LEAST_CHARACTERS = 32
_MOST_SIGNATURE_BYTES = 1024
_CONTEXT = b"kairos bundle manifest\0"
"""Precedes what is signed, so that a key used elsewhere yields no signature of a bundle."""


@final
class BundleKeys:
    """The keys that sign and verify bundles; without any, nothing is signed or verified.

    The first key signs. A signature by any of them is accepted, so that a new key can be put in
    front of the old one until every bundle is signed by it.
    """

    def __init__(self, keys: Sequence[str] = ()) -> None:
        """Take the keys.

        Raises:
            BundleKeyError: if one is too short to be secret.
        """
        for key in keys:
            if len(key) < _LEAST_CHARACTERS:
                raise BundleKeyError(
                    f"a bundle key has at least {_LEAST_CHARACTERS} characters, but one has "
                    f"{len(key)}; generate one with openssl rand -hex 32"
                )
        self._keys = {_compute_key_id(key): key.encode() for key in keys}

    @classmethod
    def parse(cls, text: str) -> "BundleKeys":
        """Read keys that are separated by commas or white space.

        Raises:
            BundleKeyError: if there is none, or one is too short.
        """
        keys = text.replace(",", " ").split()
        if not keys:
            raise BundleKeyError(
                "a bundle key must not be empty, but KAIROS_BUNDLE_KEY or its file is; unset it, "
                "or generate a key with openssl rand -hex 32"
            )
        return cls(keys)

    def __bool__(self) -> bool:
        return bool(self._keys)

    def sign(self, manifest: bytes) -> bytes:
        """Compute the content of the signature file of a manifest.

        Raises:
            BundleKeyError: if there is no key.
        """
        if not self._keys:
            raise BundleKeyError(
                "signing needs a key, but there is none; set KAIROS_BUNDLE_KEY or "
                "KAIROS_BUNDLE_KEY_FILE"
            )
        key_id, key = next(iter(self._keys.items()))
        return f"{_ALGORITHM} {key_id} {_compute_tag(key, manifest)}\n".encode()

    def verify(self, directory: Path, manifest: bytes) -> None:
        """Verify the signature in a bundle's directory; without keys, do nothing.

        Raises:
            BundleError: if it is missing, of a key that is not configured, or wrong.
        """
        if not self._keys:
            return
        try:
            with (directory / SIGNATURE).open("rb") as stream:
                signature = stream.read(_MOST_SIGNATURE_BYTES).decode("ascii", "replace")
        except OSError as error:
            raise BundleError(
                f"a bundle must be signed where KAIROS_BUNDLE_KEY is set, but {directory.name} has "
                f"no readable {SIGNATURE}; if you trust it, run kairos models sign"
            ) from error
        algorithm, _, rest = signature.strip().partition(" ")
        key_id, _, tag = rest.partition(" ")
        key = self._keys.get(key_id)
        if algorithm != _ALGORITHM or key is None:
            raise BundleError(
                f"a bundle must be signed with {_ALGORITHM} and one of the keys in "
                f"KAIROS_BUNDLE_KEY ({', '.join(self._keys)}), but {directory.name} is signed with "
                f"{algorithm[:20]!a} and {key_id[:20]!a}; add that key, or run kairos "
                "models sign if you trust the bundle"
            )
        if not hmac.compare_digest(tag.encode(), _compute_tag(key, manifest).encode()):
            raise BundleError(
                f"the signature of a bundle must match its manifest, but that of {directory.name} "
                "does not: one of them was altered; publish it again"
            )


NO_KEYS = BundleKeys()
"""Signs and verifies nothing."""


def _compute_tag(key: bytes, manifest: bytes) -> str:
    return hmac.new(key, _CONTEXT + manifest, hashlib.sha256).hexdigest()


def _compute_key_id(key: str) -> str:
    """Compute a name of a key that does not reveal it."""
    return hashlib.sha256(b"kairos bundle key id\0" + key.encode()).hexdigest()[:8]
