"""The pages on what is inside name what is there: every module of message passing is on the page of its folder."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MESSAGES = ROOT / "svae" / "messages"
PAGES = ROOT / "docs" / "internals" / "messages"
FOLDERS = [folder for folder in sorted(MESSAGES.iterdir()) if (folder / "__init__.py").exists()]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_module_of_message_passing_is_on_the_page_of_its_folder(folder):
    own = PAGES / f"{folder.name}.md"
    text = (own if own.exists() else PAGES / "kernels.md").read_text(encoding="utf-8")
    unsaid = {"__init__.py"} if folder.name == "algebra" else set()
    assert [file.name for file in folder.glob("*.py") if f"`{file.name}`" not in text and file.name not in unsaid] == []


def test_every_part_of_message_passing_is_on_its_first_page():
    text = (PAGES / "index.md").read_text(encoding="utf-8")
    parts = [f"{folder.name}/" for folder in FOLDERS] + [file.name for file in MESSAGES.glob("[!_]*.py")]
    assert [part for part in parts if f"`{part}`" not in text] == []
