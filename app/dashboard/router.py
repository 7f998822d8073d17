"""The dashboard, and the reference of the API: static pages that use the public HTTP API."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter, Request, Response
from starlette.responses import RedirectResponse

from app.dashboard.pages import DashboardFiles


@asynccontextmanager
async def _lifespan(_: object) -> AsyncIterator[None]:
    """Read the files before the first request, which would block the event loop on it."""
    _read_files()
    yield


router = APIRouter(include_in_schema=False, lifespan=_lifespan)

# Large scripts come from installed packages, whose versions are pinned: no network is needed.
_SWAGGER_UI = Path(str(files("fastapi_swagger"))) / "resources"
_LIBRARIES = (
    _SWAGGER_UI / "swagger-ui-bundle.js",
    _SWAGGER_UI / "swagger-ui.css",
)

# Item titles are untrusted: a title that is interpreted as markup in spite of the templates must
# neither run nor send anything to another host. What is not listed here is refused.
_POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "connect-src": "'self'",
    # The style sheet of Swagger UI has its icons as `data:` images.
    "img-src": "'self' data:",
    "object-src": "'none'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
}
_UNUSED = ("camera", "display-capture", "geolocation", "microphone", "payment", "usb")
_HEADERS = {
    "Content-Security-Policy": "; ".join(f"{kind} {source}" for kind, source in _POLICY.items()),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": ", ".join(f"{feature}=()" for feature in _UNUSED),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


@router.get("/docs")
async def to_the_reference() -> RedirectResponse:
    """Redirect to the reference of the API, which is subject to the same policy."""
    return RedirectResponse("dashboard/docs.html")


@router.get("/dashboard")
async def to_the_pages() -> RedirectResponse:
    """Redirect to the first page; relative, so that it works behind a proxy under any path."""
    return RedirectResponse("dashboard/")


@router.get("/dashboard/{path:path}")
async def page(path: str, request: Request) -> Response:
    """Return a file of the dashboard, with headers that allow only its own files to load."""
    response = _read_files().respond(path or "index.html", request)
    response.headers.update(_HEADERS)
    return response


@cache
def _read_files() -> DashboardFiles:
    """Read the files, once per process."""
    return DashboardFiles(Path(__file__).parent, {path.name: path for path in _LIBRARIES})
