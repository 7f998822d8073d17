"""The dashboard: static pages that talk to the same API as everybody else."""

from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter, Request, Response
from starlette.responses import FileResponse, RedirectResponse
from starlette.staticfiles import StaticFiles

router = APIRouter(prefix="/dashboard", include_in_schema=False)

_PAGES = StaticFiles(directory=Path(__file__).parent / "static", html=True)
_PLOTLY = Path(str(files("plotly"))) / "package_data" / "plotly.min.js"

# Item titles are untrusted: even one that escaped the page's own care must not run.
_GUARD = {
    "Content-Security-Policy": "default-src 'self'; object-src 'none'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


@router.get("")
async def to_the_pages() -> RedirectResponse:
    """Relative, so that it holds behind a proxy under any path."""
    return RedirectResponse("dashboard/")


@router.get("/plotly.min.js")
async def plotly() -> FileResponse:
    """The plotting library, from the installed package: no network is needed."""
    return FileResponse(_PLOTLY, media_type="text/javascript", headers=_GUARD)


@router.get("/{path:path}")
async def page(path: str, request: Request) -> Response:
    """A file of the dashboard, with headers that let it load and run nothing but our own files."""
    response = await _PAGES.get_response(path or ".", request.scope)
    response.headers.update(_GUARD)
    return response
