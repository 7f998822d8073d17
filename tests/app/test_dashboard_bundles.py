"""The bundles of the dashboard: a page's modules joined into one script."""

from pathlib import Path

import pytest

import app.dashboard
from app.dashboard.bundling import UnsupportedModuleError, bundle, find_modules
from app.dashboard.pages import PAGES, Page
from tests.app.client import Client

STATIC = Path(app.dashboard.__file__).parent / "static"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.folder)
def test_a_page_loads_one_script_with_all_its_modules(shared_client: Client, page: Page) -> None:
    text = shared_client.get(f"/dashboard/{page.file}").text
    assert f'<script type="module" src="{page.bundle}"></script>' in text
    assert "modulepreload" not in text
    served = shared_client.get(f"/dashboard/{page.bundle}")
    assert served.headers["content-type"].startswith("text/javascript")
    assert served.text == bundle(STATIC, page.main)
    modules = find_modules(STATIC, page.main)
    assert {page.main, "shell/api.js", "vendor/lit-html.js"} <= set(modules)
    assert [line[3:] for line in served.text.splitlines() if line[3:] in modules] == modules


def test_modules_come_once_after_those_that_they_import(tmp_path: Path) -> None:
    _write(
        tmp_path,
        {
            "page/main.js": 'import { b } from "./b.js";\nimport { c } from "../c.js";\n',
            "page/b.js": 'import { c } from "../c.js";\nexport const b = c;\n',
            "c.js": "export const c = 1;\n",
        },
    )
    assert find_modules(tmp_path, "page/main.js") == ["c.js", "page/b.js", "page/main.js"]


@pytest.mark.parametrize(
    "statement",
    [
        "export default 1;",
        "export let count = 1;",
        'export * from "./other.js";',
        'import other from "./other.js";',
        'import "./other.js";',
        "const here = import.meta.url;",
    ],
)
def test_what_cannot_be_bundled_is_refused_with_its_module(tmp_path: Path, statement: str) -> None:
    _write(tmp_path, {"main.js": f"{statement}\n", "other.js": ""})
    with pytest.raises(UnsupportedModuleError, match=r"but main\.js has "):
        bundle(tmp_path, "main.js")


def _write(folder: Path, modules: dict[str, str]) -> None:
    for name, text in modules.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, "utf-8")
