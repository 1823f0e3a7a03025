"""The documentation site, readable from the disk without a network:  python website.py [FOLDER]

The pages are those of docs/, as they are. What GitHub shows and Python-Markdown does not is put right in a copy,
the pages of the command line and the decisions are put into the navigation, and every link of the result is followed.
"""

import base64
import itertools
import json
import re
import shutil
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parent
PROJECT_PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
    "SECURITY.md": "security.md",
}
WORKER = re.compile(r'<script src="https://unpkg\.com/iframe-worker/shim"')
LIST = re.compile(r"(?:[-*] |\d+\. )")


def page(text: str) -> str:
    """A page without the marks of the tests, and with the empty line that a list needs."""
    lines, fenced = [], False
    for line in text.replace("```python no-run", "```python").splitlines():
        fenced ^= line.startswith("```")
        before = lines[-1] if lines else ""
        if not fenced and LIST.match(line) and before and not before.startswith(" ") and not LIST.match(before):
            lines.append("")
        lines.append(line)
    return "\n".join(lines) + "\n"


def project_page(text: str) -> str:
    """A page from the root of the repository: its links begin in docs/ now."""
    names = "|".join(re.escape(name) for name in PROJECT_PAGES)
    text = re.sub(rf"\]\(({names})\)", lambda match: f"]({PROJECT_PAGES[match[1]]})", text)
    return text.replace("](docs/", "](").replace("](LICENSE)", "](https://www.apache.org/licenses/LICENSE-2.0)")


def notebook(source: Path, docs: Path) -> str:
    """A notebook as a page, with the outputs that are kept in it; its pictures go beside the page."""
    parts, pictures = [], itertools.count()
    for cell in json.loads(source.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "image/png" in data:
                name = f"{source.stem}-{next(pictures)}.png"
                (docs / "notebooks" / name).write_bytes(base64.b64decode(data["image/png"]))
                parts.append(f"![An output of the cell above]({name})")
            else:
                shown = data.get("text/plain", output.get("text", ""))
                parts.append("```text\n" + "".join(shown).rstrip() + "\n```")
    return "\n\n".join(parts) + "\n"


def title(path: Path) -> str:
    return path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ").replace('"', "'")


def entries(folder: Path, docs: Path, without: tuple[str, ...] = ()) -> str:
    """Lines of the navigation for the pages of a folder."""
    pages = [path for path in sorted(folder.glob("*.md")) if path.name not in without]
    return "".join(f'      {{ "{title(path)}" = "{path.relative_to(docs).as_posix()}" }},\n' for path in pages)


def write_pages(docs: Path) -> None:
    """The pages as the site has them."""
    shutil.copytree(ROOT / "docs", docs)
    for path in docs.rglob("*.md"):
        path.write_text(page(path.read_text(encoding="utf-8")), encoding="utf-8")
    for source, target in PROJECT_PAGES.items():
        text = project_page((ROOT / source).read_text(encoding="utf-8"))
        (docs / target).write_text(page(text), encoding="utf-8")
    (docs / "notebooks").mkdir()
    for source in (ROOT / "notebooks").glob("*.ipynb"):
        text = notebook(source, docs)
        (docs / "notebooks" / f"{source.stem}.md").write_text(page(text), encoding="utf-8")


def settings(docs: Path) -> str:
    """zensical.toml with the whole navigation, for a copy of the pages."""
    text = (ROOT / "zensical.toml").read_text(encoding="utf-8")
    text = text.replace("# VERBS\n", entries(docs / "cli", docs, ("index.md", "options.md")))
    named = tuple(path.name for path in docs.glob("*.md") if f'"{path.name}"' in text)
    text = text.replace("# FURTHER\n", entries(docs, docs, named))
    text = text.replace("# NOTEBOOKS\n", entries(docs / "notebooks", docs))
    text = text.replace("# DECISIONS\n", entries(docs / "decisions", docs))
    return text.replace('paths = ["."]', f'paths = ["{ROOT.as_posix()}"]')


class Page(HTMLParser):
    """Where a page of the site leads, what it loads, and the names of its places."""

    def __init__(self, text: str):
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if value and name in ("href", "src"):
                self.links.append(value)
                if name == "src" or (tag, "stylesheet") in [(tag, word) for key, word in attrs if key == "rel"]:
                    self.loaded.append(value)
            if value and name in ("id", "name"):
                self.places.add(value)


def broken(site: Path) -> list[str]:
    """Links inside the site that lead nowhere, and anything that would be loaded from elsewhere."""
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    nowhere = [(path, link) for path, page in pages.items() for link in page.links if not leads(link, path, pages)]
    elsewhere = [(path, link) for path, page in pages.items() for link in page.loaded if urlsplit(link).netloc]
    return [f"{path.name}: {link}" for path, link in nowhere + elsewhere]


def leads(link: str, path: Path, pages: dict[Path, Page]) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc or path.name == "404.html":  # outside; the page of errors has addresses of a server
        return True
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.is_file():
        return False
    return not parts.fragment or target not in pages or unquote(parts.fragment) in pages[target].places


def build(out: Path) -> None:
    """The whole site; a warning or a broken link ends it with a sentence."""
    with tempfile.TemporaryDirectory() as folder:
        docs, config = Path(folder) / "docs", Path(folder) / "zensical.toml"
        write_pages(docs)
        config.write_text(settings(docs), encoding="utf-8")
        command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "-f", str(config)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if done.returncode != 0 or "griffe:" in done.stdout + done.stderr:
            raise SystemExit(f"the site could not be built:\n{done.stdout}{done.stderr}")
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(Path(folder) / "site", out)
    for path in out.rglob("*.html"):  # the search from the disk, without the network
        worker = f'<script src="{"../" * (len(path.relative_to(out).parts) - 1)}assets/worker.js"'
        path.write_text(WORKER.sub(worker, path.read_text(encoding="utf-8")), encoding="utf-8")
    if found := broken(out):
        raise SystemExit("links that lead nowhere:\n" + "\n".join(found))
    print(f"{len(list(out.rglob('*.html')))} pages; open {out / 'index.html'}")


if __name__ == "__main__":
    build(Path(sys.argv[1] if len(sys.argv) > 1 else "site"))
