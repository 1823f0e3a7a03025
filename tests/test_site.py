"""The documentation site: built without a warning, no link that leads nowhere, no page forgotten, and read offline."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.view.browser import WHY_NOT, Browser

ROOT = Path(__file__).parents[1]
pytest.importorskip("zensical", reason="the site needs  pip install '.[docs]'")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built by the command of `make site`, which ends with a sentence where anything is wrong."""
    out = tmp_path_factory.mktemp("site") / "site"
    done = subprocess.run([sys.executable, "website.py", str(out)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def go(tab, path):
    """Open a page of the site from the disk."""
    tab.call("Page.navigate", url=path.as_uri())
    tab.until(f"document.readyState === 'complete' && location.href.endsWith({path.name!r})")


def test_every_page_is_there_and_in_the_navigation(site):
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert pages <= {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    sections = ["index.html", "start.html", "recipes.html", "reference/api.html", "cli/index.html", "compared.html"]
    text = "".join((site / section).read_text(encoding="utf-8") for section in sections)
    names = {name.rsplit("/", 1)[-1] for name in pages}
    assert [name for name in sorted(names) if name not in text] == []


def test_the_reference_has_every_public_name():
    import svae

    text = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8").split()
    rooms = set(svae._ROOMS)
    assert [name for name in svae.__all__ if name not in rooms and f"svae.{name}" not in text] == []


@pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))
def test_search_works_from_the_disk(site, tmp_path):
    with Browser(tmp_path, 1440, 900) as tab:
        go(tab, site / "index.html")
        tab.value("document.querySelector('.md-search__button').click()")
        inside = (
            "[...document.querySelectorAll('*')].map((e) => e.shadowRoot).find((root) => root?.querySelector('input'))"
        )
        tab.until(f"!!{inside}?.activeElement")
        tab.write("stickiness")
        tab.until(f"/[1-9][0-9]* results/.test({inside}.textContent)")


@pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))
def test_no_page_is_wider_than_a_telephone(site, tmp_path):
    wide = []
    with Browser(tmp_path, 400, 800) as tab:
        for path in sorted(site.rglob("*.html")):
            go(tab, path)
            if tab.value("document.documentElement.scrollWidth") > 400:
                wide.append(path.name)
    assert wide == []
