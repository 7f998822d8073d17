"""A script does in the browser what its modules do one by one."""

from pathlib import Path

from playwright.sync_api import Page

from app.dashboard.page_scripts import PageScripts

MODULES = {
    "main.js": """
import { value as renamed, double } from "./named.js";
import * as all from "./named.js";
import {
  passed,
  Kind,
} from "./shell.js";
import{a as minified,b}from"./minified.js";import{a}from"./minified.js";

const value = "of main alone";
const text = `
  import in a text, and
  export`;
globalThis.result = [renamed, double(2), all.value, passed, new Kind().name, minified, b, a, value];
globalThis.order.push("main");
globalThis.text = text;
export async function unused() {}
""",
    "named.js": """
globalThis.order = [...(globalThis.order ?? []), "named"];
export const value = 1;
export const double = (number) => helper(number);
function helper(number) {
  return 2 * number;
}
""",
    "shell.js": """
import { value } from "./named.js";
export { value as passed } from "./named.js";
export class Kind {
  name = `kind ${value}`;
}
globalThis.order.push("shell"); // the last line, without an end""",
    "minified.js": "const t=3,r=4;globalThis.order.push('minified');export{t as a,r as b};\n",
}


def test_a_script_does_what_its_modules_do(page: Page, tmp_path: Path) -> None:
    for name, text in MODULES.items():
        (tmp_path / name).write_text(text.lstrip("\n"), "utf-8")
    page.add_script_tag(type="module", content=PageScripts(tmp_path).join("main.js"))
    page.wait_for_function("globalThis.text")
    assert page.evaluate("result") == [1, 4, 1, 1, "kind 1", 3, 4, 3, "of main alone"]
    assert page.evaluate("order") == ["named", "shell", "minified", "main"]
    assert page.evaluate("text") == "\n  import in a text, and\n  export"
