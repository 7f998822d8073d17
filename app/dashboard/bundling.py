"""Bundles: the modules of a page joined into one script when the service starts.

Thirty requests for modules cost service and browser a tenth of a second of processor time, which
the first charts wait for. The modules are joined as they are, not minified, so no tool is needed.
"""

import posixpath
import re
from pathlib import Path

_NAMES = r"(\{[^}]*\})"
_FROM = r' ?from ?"(\.[^"]+)";'
# Minified modules have several statements per line and no spaces.
_START = r"(?:^|(?<=[;}]))"
_IMPORT = re.compile(rf"{_START}import ?(?:{_NAMES}|\* as ([\w$]+)){_FROM}", re.MULTILINE)
_REEXPORT = re.compile(rf"{_START}export ?{_NAMES}{_FROM}", re.MULTILINE)
_EXPORT_LIST = re.compile(rf"{_START}export ?{_NAMES};", re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:const|class|(?:async )?function) ([\w$]+))", re.MULTILINE)
_UNSUPPORTED = re.compile(rf"{_START}(?:import|export)\b.*|import\.meta", re.MULTILINE)


class UnsupportedModuleError(Exception):
    """A module has a form of import or export that cannot be bundled."""


def find_modules(static: Path, main: str) -> list[str]:
    """Find the modules that `main` imports, directly or not, and `main` itself.

    Returns:
        paths relative to `static`; each module comes after those that it imports.
    """
    ordered: dict[str, None] = {}

    def add(name: str) -> None:
        text = (static / name).read_text("utf-8")
        for statement in (*_IMPORT.finditer(text), *_REEXPORT.finditer(text)):
            imported = _resolve(name, statement.groups()[-1])
            if imported not in ordered:
                add(imported)
        ordered[name] = None

    add(main)
    return list(ordered)


def bundle(static: Path, main: str) -> str:
    """Join `main` and the modules that it imports into one module.

    Each module becomes a function that returns its exports, and is called once, in the order in
    which a browser would execute the modules.

    Raises:
        UnsupportedModuleError: if a module imports or exports in a form other than those in use.
    """
    modules = find_modules(static, main)
    variables = {name: f"$module{index}" for index, name in enumerate(modules)}
    return "".join(
        f"// {name}\nconst {variables[name]} = (() => {{\n"
        f"{_to_function_body(name, (static / name).read_text('utf-8'), variables)}}})();\n"
        for name in modules
    )


def _to_function_body(name: str, text: str, variables: dict[str, str]) -> str:
    exports: list[str] = []

    def to_declaration(match: re.Match[str]) -> str:
        names, namespace, path = match.groups()
        target = namespace or names.replace(" as ", ": ")
        return f"const {target} = {variables[_resolve(name, path)]};"

    def reexport(match: re.Match[str]) -> str:
        source = variables[_resolve(name, match[2])]
        exports.extend(f"{new}: {source}.{old}" for old, new in _split_names(match[1]))
        return ""

    def export_list(match: re.Match[str]) -> str:
        exports.extend(f"{new}: {old}" for old, new in _split_names(match[1]))
        return ""

    def export_declaration(match: re.Match[str]) -> str:
        exports.append(match[2])
        return match[1]

    text = _IMPORT.sub(to_declaration, text)
    text = _REEXPORT.sub(reexport, text)
    text = _EXPORT_LIST.sub(export_list, text)
    text = _EXPORT.sub(export_declaration, text)
    unsupported = _UNSUPPORTED.search(text)
    if unsupported is not None:
        raise UnsupportedModuleError(
            "a bundle supports imports and exports of names, and exported declarations, but "
            f"{name} has {unsupported[0]!r}; write it as one of these"
        )
    return f"{text}return {{{', '.join(exports)}}};\n"


def _split_names(names: str) -> list[tuple[str, str]]:
    """Split the names of an export into pairs: the name in the module, and that for others."""
    pairs = [name.strip().partition(" as ") for name in names.strip("{}").split(",")]
    return [(old, new or old) for old, _, new in pairs]


def _resolve(name: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
