"""The examples in docstrings run, and show what they say."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import dagster_dataframely as dd

PACKAGE = Path(dd.__file__).parent


def modules_with_examples() -> list[str]:
    """Return the modules whose source has an example, found without importing them."""
    sources = {
        ".".join(["dagster_dataframely", *path.relative_to(PACKAGE).with_suffix("").parts]): path
        for path in sorted(PACKAGE.rglob("*.py"))
    }
    return [
        name.removesuffix(".__init__")
        for name, path in sources.items()
        if ">>> " in path.read_text()
    ]


@pytest.mark.parametrize("module", modules_with_examples())
def test_every_example_of_a_module_shows_what_it_says(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    results = doctest.testmod(importlib.import_module(module))

    assert results.failed == 0, capsys.readouterr().out
    assert results.attempted > 0


PUBLIC = {
    **{name: getattr(dd, name) for name in dd.__all__ if name not in ("data", "errors", "wiring")},
    **{f"wiring.{name}": getattr(dd.wiring, name) for name in dd.wiring.__all__},
}


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_an_example(name: str) -> None:
    assert ">>> " in (PUBLIC[name].__doc__ or "")
