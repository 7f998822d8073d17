"""The poll that copies bundles from an object store to this machine."""

import asyncio

from model.errors import BundleError
from model.store.mirrored import MirroredStore


async def mirror_bundles(store: MirroredStore) -> None:
    """Bring the local copy up to date once; what prevents it is then the store's `fault`.

    The copy serves meanwhile, so the fault is reported like that of a pointer and ends nothing.
    """
    try:
        await asyncio.to_thread(store.synchronize)
    except (OSError, BundleError) as error:
        store.fault = f"{store.storage.url} is not followed: {error}"
    else:
        store.fault = None
