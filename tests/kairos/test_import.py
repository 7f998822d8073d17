"""What `import kairos` loads."""

import subprocess
import sys

import pytest

import kairos


def test_importing_the_package_imports_no_library() -> None:
    heavy = "{'torch', 'polars', 'numpy', 'matplotlib', 'pandas', 'model', 'training'}"
    code = f"import sys, kairos; print(sorted({heavy} & {{*sys.modules}}))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_neither_pandas_nor_matplotlib_is_required() -> None:
    missing = "dict.fromkeys(('IPython', 'matplotlib', 'pandas', 'pyarrow'))"
    code = f"import sys; sys.modules.update({missing}); import kairos; print(kairos.fit.__name__)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "fit"


def test_the_listed_names_are_there_and_no_others() -> None:
    assert {name: getattr(kairos, name).__name__ for name in dir(kairos)} == {
        "Model": "Model",
        "fit": "fit",
        "load": "load",
    }
    with pytest.raises(AttributeError, match="no attribute 'train'"):
        _ = kairos.train
