"""Scripts of pages: the modules of a page joined into one script when the service starts.

Two dozen requests for modules cost service and browser more processor time than what they do before
the first numbers. The modules are joined as they are, not minified, so no tool is needed.
"""

import posixpath
import re
from pathlib import Path
from typing import NamedTuple, final

_NAMES = r"(\{[^}]*\})"
_FROM = r' ?from ?"(\.[^"]+)";'
# Where a statement may begin: minified modules have several per line and no spaces. The words come
# first, as a search for them is many times as fast as one for their place.
_IMPORT_WORD = r"import(?<![^\n;}]import)"
_EXPORT_WORD = r"export(?<![^\n;}]export)"
_IMPORT = re.compile(rf"{_IMPORT_WORD} ?(?:{_NAMES}|\* as ([\w$]+)){_FROM}")
_REEXPORT = re.compile(rf"{_EXPORT_WORD} ?{_NAMES}{_FROM}")
_EXPORT_LIST = re.compile(rf"{_EXPORT_WORD} ?{_NAMES};")
_EXPORT = re.compile(r"export(?<![^\n]export) ((?:const|class|(?:async )?function) ([\w$]+))")
_UNSUPPORTED = tuple(
    re.compile(form) for form in (rf"{_IMPORT_WORD}\b.*", rf"{_EXPORT_WORD}\b.*", r"import\.meta")
)


class UnsupportedModuleError(Exception):
    """A module has a form of import or export that cannot be joined."""


class _Module(NamedTuple):
    """A module as the body of a function that returns its exports.

    Attributes:
        imports: each imported module, and the names that are imported from it.
    """

    imports: list[tuple[str, list[str]]]
    exports: list[str]
    body: str


@final
class PageScripts:
    """Joins the modules of a folder, each of which is read and converted once.

    The forms of import and export in use are supported, others are refused. Not noticed, as modules
    are not parsed: lines of texts and comments that look like an import or export, an exported
    variable that is assigned later, and `await` outside functions.
    """

    def __init__(self, static: Path) -> None:
        self._static = static
        self._modules: dict[str, _Module] = {}

    def find_modules(self, main: str) -> list[str]:
        """Find the modules that `main` imports, directly or not, and `main` itself.

        Returns:
            paths relative to the folder; each module comes after those that it imports.

        Raises:
            UnsupportedModuleError: as `join` does.
        """
        ordered: dict[str, None] = {}

        def add(name: str, importers: tuple[str, ...]) -> None:
            if name in importers:
                raise UnsupportedModuleError(
                    f"modules of a page must not import each other, but {name} imports itself by "
                    f"way of {importers[-1]}; move what they share into a module of its own"
                )
            for imported, _ in self._read(name).imports:
                if imported not in ordered:
                    add(imported, (*importers, name))
            ordered[name] = None

        add(main, ())
        return list(ordered)

    def join(self, main: str) -> str:
        """Join `main` and the modules that it imports into one module.

        Each module becomes a function that returns its exports, and is called once, in the order in
        which a browser would execute the modules.

        Raises:
            UnsupportedModuleError: if a module imports or exports in a form other than those in
                use, imports what no module exports, or imports itself.
        """
        modules = self.find_modules(main)
        for name in modules:
            for imported, names in self._read(name).imports:
                if missing := {*names} - {*self._read(imported).exports}:
                    raise UnsupportedModuleError(
                        "a module imports names that another one exports, each by a statement of "
                        f"its own or in a list, but {name} imports {', '.join(sorted(missing))} "
                        f"from {imported}; correct one of them"
                    )
        return "".join(
            f"// {name}\nconst {_to_variable(name)} = (() => {{\n{self._read(name).body}}})();\n"
            for name in modules
        )

    def _read(self, name: str) -> _Module:
        if name not in self._modules:
            self._modules[name] = _convert(name, (self._static / name).read_text("utf-8"))
        return self._modules[name]


def _convert(name: str, text: str) -> _Module:
    imports: list[tuple[str, list[str]]] = []
    exports: list[tuple[str, str]] = []

    def import_names(match: re.Match[str]) -> str:
        names, namespace, path = match.groups()
        imported = _resolve(name, path)
        imports.append((imported, [old for old, _ in _split_names(names or "")]))
        target = namespace or names.replace(" as ", ": ")
        return f"const {target} = {_to_variable(imported)};"

    def reexport(match: re.Match[str]) -> str:
        imported, names = _resolve(name, match[2]), _split_names(match[1])
        imports.append((imported, [old for old, _ in names]))
        exports.extend((new, f"{_to_variable(imported)}.{old}") for old, new in names)
        return ""

    def export_list(match: re.Match[str]) -> str:
        exports.extend((new, old) for old, new in _split_names(match[1]))
        return ""

    def export_declaration(match: re.Match[str]) -> str:
        exports.append((match[2], match[2]))
        return match[1]

    text = _IMPORT.sub(import_names, text)
    text = _REEXPORT.sub(reexport, text)
    text = _EXPORT_LIST.sub(export_list, text)
    text = _EXPORT.sub(export_declaration, text)
    for form in _UNSUPPORTED:
        if found := form.search(text):
            raise UnsupportedModuleError(
                "joining supports imports and exports of names, and exported declarations, but "
                f"{name} has {found[0]!r}; write it as one of these"
            )
    returned = ", ".join(f"{new}: {value}" for new, value in exports)
    # On a line of its own: the last one of the module may be a comment.
    return _Module(imports, [new for new, _ in exports], f"{text}\nreturn {{{returned}}};\n")


def _split_names(names: str) -> list[tuple[str, str]]:
    """Split the names of an import or export into pairs: the name in the module, and the other."""
    pairs = [name.strip().partition(" as ") for name in names.strip("{}").split(",")]
    return [(old, new or old) for old, _, new in pairs if old]


def _to_variable(name: str) -> str:
    return "$" + re.sub(r"\W", "_", name)


def _resolve(name: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
