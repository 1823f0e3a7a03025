"""What people read is plain: no archaic words, one glossary, and help that says the defaults."""

import ast
import contextlib
import io
import re
from pathlib import Path

import pytest

from svae.cli import main
from svae.cli.pages import pages
from svae.named import DEFAULT_STATES
from svae.report._glossary import OF_SECTIONS, TERMS, as_markdown
from svae.report._report import TITLES

ROOT = Path(__file__).parents[1]
RIDDLES = re.compile(
    r"foret[eo]l|remember themselves|it is time over|looks wrong|make them alike|half of the bouts do not reach|"
    r"by heart|nobody foresaw|unforeseen|knows no time|held against|told of\b",
    re.IGNORECASE,
)
ROOMS = sorted(p for p in (ROOT / "svae").iterdir() if p.is_dir() and list(p.glob("*.py")))
DOCS = [ROOT / "README.md", *sorted(p for p in (ROOT / "docs").rglob("*.md") if "decisions" not in p.parts)]


def texts(file):
    """Every string of a module, docstrings included."""
    return [
        n.value
        for n in ast.walk(ast.parse(file.read_text()))
        if isinstance(n, ast.Constant) and isinstance(n.value, str)
    ]


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_messages_are_plain_english(room):
    found = [(f.name, t) for f in room.rglob("*.py") for t in texts(f) if RIDDLES.search(t)]
    assert not found
    scripts = [(f.name, RIDDLES.search(f.read_text())) for f in room.rglob("*.js")]
    assert not [name for name, match in scripts if match]


@pytest.mark.parametrize("page", DOCS, ids=lambda page: str(page.relative_to(ROOT)))
def test_docs_are_plain_english(page):
    assert not RIDDLES.search(page.read_text(encoding="utf-8"))


def test_the_glossary_is_one_and_every_link_of_a_report_has_a_word():
    assert (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8") == as_markdown()
    assert {word for words in OF_SECTIONS.values() for word in words} <= set(TERMS)
    assert set(OF_SECTIONS) == {"summary", *TITLES}
    for word in (
        "state",
        "latent",
        "bound",
        "nats",
        "held out",
        "stickiness",
        "target duration",
        "flow",
        "eigenvalues",
    ):
        assert word in TERMS


def test_help_says_the_default_number_of_states():
    with contextlib.redirect_stdout(io.StringIO()) as out:
        main(["fit", "--help"])
    said = " ".join(re.sub(r"[^\x20-\x7e]", " ", out.getvalue()).split())
    assert f"number of states; {DEFAULT_STATES} unless given" in said
    assert "continuous latent; the data say it unless given" in said
    assert f"number of states; {DEFAULT_STATES} unless given" in pages()["fit.md"]
