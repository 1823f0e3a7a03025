from pathlib import Path

from svae.cli import app
from svae.cli._examples import EXAMPLES
from svae.cli.pages import pages

FOLDER = Path(__file__).parents[2] / "docs" / "cli"


def test_pages_are_up_to_date():
    """If this fails:  python -m svae.cli.pages docs/cli"""
    assert {file.name: file.read_text(encoding="utf-8") for file in FOLDER.glob("*.md")} == pages()


def test_every_verb_has_an_example_and_every_argument_its_words():
    assert {name for name in app if not name.startswith("-")} == set(EXAMPLES)
    rows = [line for text in pages().values() for line in text.splitlines() if line.startswith("| `")]
    assert rows and not [row for row in rows if row.endswith("|  |")]
