"""Every ```python block of README.md and docs/ runs, in order, one namespace per file; ```python no-run only parses."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```python([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NO_RUN = " no-run"


def blocks(page):
    """(line number, info after the word python, code) of each block."""
    text = page.read_text(encoding="utf-8")
    return [(text[: m.start(2)].count("\n") + 1, m[1], m[2]) for m in FENCE.finditer(text)]


def pages_with_code():
    return [page for page in PAGES if any(info == "" for _, info, _ in blocks(page))]


@pytest.mark.parametrize("page", pages_with_code(), ids=lambda page: str(page.relative_to(ROOT)))
def test_code_of_the_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for line, info, code in blocks(page):
        if info == "":
            # blank lines before the code make tracebacks show the line of the page
            exec(compile("\n" * (line - 1) + code, str(page), "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_is_python_and_marked_in_a_known_way(page):
    for _, info, code in blocks(page):
        assert info in ("", NO_RUN)
        ast.parse(code)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_inside_the_repository_lead_somewhere(page):
    for target in re.findall(r"(?<!!)\[[^\]]*\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
        assert target.startswith(("http://", "https://")) or (page.parent / target).exists(), target
