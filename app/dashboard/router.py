"""The dashboard: static pages that talk to the same API as everybody else."""

from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter, Request, Response
from starlette.responses import RedirectResponse

from app.dashboard.pages import Pages

router = APIRouter(prefix="/dashboard", include_in_schema=False)

# The plotting library comes from the installed package: no network is needed.
_PLOTLY = Path(str(files("plotly"))) / "package_data" / "plotly.min.js"
_PAGES = Pages(Path(__file__).parent / "static", {_PLOTLY.name: _PLOTLY})

# Item titles are untrusted: even one that escaped the page's own care must not run, nor send
# anything anywhere else. What is not named here is refused.
_POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "connect-src": "'self'",
    # `data:` images are how plotly.js draws heat maps: pixels it painted itself.
    "img-src": "'self' data:",
    "object-src": "'none'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
}
_UNUSED = ("camera", "display-capture", "geolocation", "microphone", "payment", "usb")
_GUARD = {
    "Content-Security-Policy": "; ".join(f"{kind} {source}" for kind, source in _POLICY.items()),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": ", ".join(f"{feature}=()" for feature in _UNUSED),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


@router.get("")
async def to_the_pages() -> RedirectResponse:
    """Relative, so that it holds behind a proxy under any path."""
    return RedirectResponse("dashboard/")


@router.get("/{path:path}")
async def page(path: str, request: Request) -> Response:
    """A file of the dashboard, with headers that let it load and run nothing but our own files."""
    return _guarded(_PAGES.answer(path or "index.html", request))


def _guarded(response: Response) -> Response:
    response.headers.update(_GUARD)
    return response
