"""The scripts of the dashboard: the modules of a page joined into one script."""

from pathlib import Path

import pytest

import app.dashboard
from app.dashboard.page_scripts import PageScripts, UnsupportedModuleError
from app.dashboard.pages import PAGES, Page
from tests.app.client import Client

STATIC = Path(app.dashboard.__file__).parent / "static"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.folder)
def test_a_page_loads_one_script_with_all_its_modules(shared_client: Client, page: Page) -> None:
    text = shared_client.get(f"/dashboard/{page.file}").text
    assert f'<script type="module" src="{page.script}"></script>' in text
    assert "modulepreload" not in text
    served = shared_client.get(f"/dashboard/{page.script}")
    assert served.headers["content-type"].startswith("text/javascript")
    scripts = PageScripts(STATIC)
    assert served.text == scripts.join(page.main)
    modules = scripts.find_modules(page.main)
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
    assert PageScripts(tmp_path).find_modules("page/main.js") == [
        "c.js",
        "page/b.js",
        "page/main.js",
    ]


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
def test_what_cannot_be_joined_is_refused_with_its_module(tmp_path: Path, statement: str) -> None:
    _write(tmp_path, {"main.js": f"{statement}\n", "other.js": ""})
    with pytest.raises(UnsupportedModuleError, match=r"but main\.js has "):
        PageScripts(tmp_path).join("main.js")


@pytest.mark.parametrize(
    ("modules", "rule"),
    [
        (
            {
                "main.js": 'import { b } from "./b.js";\nexport const a = () => b;\n',
                "b.js": 'import { a } from "./main.js";\nexport const b = 1;\n',
            },
            r"but main\.js imports itself by way of b\.js",
        ),
        (
            {
                "main.js": 'import { p, q } from "./other.js";\n',
                "other.js": "export const p = 1, q = 2;\n",
            },
            r"but main\.js imports q from other\.js",
        ),
    ],
    ids=["modules that import each other", "a name that is not exported"],
)
def test_modules_that_do_not_fit_are_refused(
    tmp_path: Path, modules: dict[str, str], rule: str
) -> None:
    _write(tmp_path, modules)
    with pytest.raises(UnsupportedModuleError, match=rule):
        PageScripts(tmp_path).join("main.js")


def test_each_module_is_read_once_for_all_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = 'import { c } from "./c.js";\n'
    _write(tmp_path, {"a.js": shared, "b.js": shared, "c.js": "export const c = 1;\n"})
    read: list[str] = []
    monkeypatch.setattr(
        Path, "read_text", lambda path, _: read.append(path.name) or path.read_bytes().decode()
    )
    scripts = PageScripts(tmp_path)
    for main in ("a.js", "b.js"):
        scripts.join(main)
    assert sorted(read) == ["a.js", "b.js", "c.js"]


def _write(folder: Path, modules: dict[str, str]) -> None:
    for name, text in modules.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, "utf-8")
