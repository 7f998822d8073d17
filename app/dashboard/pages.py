"""The dashboard's files: pages rendered from templates, and static files, all held in memory."""

import hashlib
import mimetypes
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from app.dashboard.page_scripts import PageScripts

# V8 compiles a script with this first line off the main thread, which large ones would block for
# long: the execution of plotly.js takes 25 ms instead of 210. Other engines read a comment.
_COMPILE_EAGERLY = b"//# allFunctionsCalledOnLoad\n"
_LARGE_SCRIPT = 500_000
"""Bytes."""


@final
@dataclass(frozen=True, slots=True)
class Page:
    """One page.

    Attributes:
        file: its name in the address.
        entry: the entry of the navigation that it belongs to; its pages are tabs of it.
        title: of the page, or of its tab.
        folder: of its modules.
    """

    file: str
    entry: str
    title: str
    folder: str

    @property
    def main(self) -> str:
        """The module that starts the page."""
        return f"{self.folder}/main.js"

    @property
    def script(self) -> str:
        """The script that the page loads: `main` joined with the modules that it imports."""
        return f"{self.folder}/script.js"


PAGES = (
    Page("index.html", "Overview", "Overview", "overview"),
    Page("customers.html", "Customers", "Over time", "customers"),
    Page("what_if.html", "Customers", "What if", "what_if"),
    Page("items.html", "Items", "Items", "items"),
    Page("models.html", "Model", "Versions", "models"),
    Page("population.html", "Model", "Attention curves", "population"),
    Page("kernels.html", "Model", "Time kernels (advanced)", "kernels"),
    Page("health.html", "Operations", "Operations", "health"),
)
"""In the order of the navigation; the first page of an entry is where the entry leads."""


@final
@dataclass(frozen=True, slots=True)
class _Asset:
    content: bytes
    etag: str
    media_type: str


@final
class DashboardFiles:
    """Serves the pages and static files as they were when the process started.

    Starlette's `StaticFiles` looks up, opens and stats each file in the thread pool that model
    calls use: 1.7 ms a file against 0.01 ms from memory. Its ETag is the modification time, which
    may differ between replicas; here it is a digest of the content.
    """

    def __init__(self, folder: Path, libraries: Mapping[str, Path]) -> None:
        """Read `folder/static` and render `folder/templates`.

        `libraries` are large files of installed packages, by the names they are served under.
        """
        static = folder / "static"
        # Requests are looked up in this table, so no path of a request reaches the file system.
        files = {
            path.relative_to(static).as_posix(): path.read_bytes()
            for path in static.rglob("*")
            if path.is_file()
        }
        files |= {name: path.read_bytes() for name, path in libraries.items()}
        scripts = PageScripts(static)
        files |= {page.script: scripts.join(page.main).encode() for page in PAGES}
        for name, content in files.items():
            if name.endswith(".js") and len(content) > _LARGE_SCRIPT:
                files[name] = _COMPILE_EAGERLY + content
        for name, text in render_pages(folder):
            files[name] = text.encode()
        self._assets = {name: _to_asset(name, content) for name, content in files.items()}

    def respond(self, path: str, request: Request) -> Response:
        """Respond with a file, or with 304 if the client's copy is current.

        Raises:
            HTTPException: 404, if there is no file of that name.
        """
        asset = self._assets.get(path)
        if asset is None:
            raise HTTPException(404)
        headers = {"ETag": asset.etag}
        if asset.etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(asset.content, media_type=asset.media_type, headers=headers)


def render_pages(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the file name and the HTML of every page."""
    templates = Environment(
        loader=FileSystemLoader(folder / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    entries: dict[str, list[Page]] = {}
    for page in PAGES:
        entries.setdefault(page.entry, []).append(page)
    for page in PAGES:
        template = templates.get_template(f"{page.folder}.html")
        yield page.file, template.render(page=page, entries=entries, tabs=entries[page.entry])


def _to_asset(name: str, content: bytes) -> _Asset:
    digest = hashlib.sha256(content).hexdigest()[:32]
    # Licences have no suffix that is known.
    return _Asset(content, f'"{digest}"', mimetypes.guess_type(name)[0] or "text/plain")
