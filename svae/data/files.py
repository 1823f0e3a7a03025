"""The data files that a path, a folder or a pattern stands for."""

import glob
import os
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from .readers import sniff
from .readers.installed import reader_of
from .readers.pieces import Note, left_aside, listed
from .recordings import DataError

DOCUMENTS = {".md", ".txt", ".json", ".toml", ".yaml", ".yml", ".log", ".pdf", ".png", ".jpg", ".svg", ".py", ".ini",
             ".html", ".docx", ".odt", ".rtf", ".lnk"}  # fmt: skip
SYSTEM = {"thumbs.db", "desktop.ini", "icon\r", "__macosx", "$recycle.bin", "system volume information"}
PASSING = {".tmp", ".temp", ".part", ".crdownload", ".bak", ".swp", ".lock"}


class Files(NamedTuple):
    """Files to read, and what was left out."""

    files: list[Path]
    notes: list[Note]


def files_of(path: Path) -> Files:
    """The file, those of the folder, or those that the pattern matches."""
    if _is(path, "is_dir"):
        return _of_folder(path)
    if _is(path, "exists"):
        return Files([path], [])
    magic = glob.has_magic(str(path)) and "\0" not in str(path)
    matched = sorted(glob.glob(str(path))) if magic else []
    files = [Path(name) for name in matched if os.path.isfile(name)]
    if not files:
        raise DataError(f"There is no file {path}; check the path." if not glob.has_magic(str(path)) else
                        f"No file matches {path}; check the pattern.")  # fmt: skip
    return Files(files, [])


def _is(path, question):
    try:
        return getattr(path, question)()
    except (OSError, ValueError):  # a name that no file can have
        return False


def _of_folder(folder):
    """Data files at the top of a folder, else below it; they must be of one format."""
    top, below = _own(folder.iterdir()), _own(folder.rglob("*"))
    files = _data(top) or _data(below) or _texts(top)
    if not files:
        raise DataError(f"{folder} holds no data files.")
    kinds = Counter(map(_kind, files))
    if all(kind.startswith("other") for kind in kinds):
        sniff.kind_of(files[0])  # says what it is
    _require_readable(files)
    if len(kinds) > 1:
        named = ", ".join(f"{number} {kind}" for kind, number in kinds.items())
        raise DataError(
            f'{folder} holds files of several kinds ({named}); choose with a pattern such as "{folder}/*.csv".'
        )
    deeper = [str(file.relative_to(folder)) for file in _data(below) if file not in files]
    beside = [file.name for file in top if file not in files and file not in _data(top)]
    return Files(files, [*left_aside("file", beside), *_deeper(deeper)])


def _require_readable(files):
    """Say what a file is that svae cannot read, where others of its suffix can be read; a pattern would not help."""
    known = {file.suffix.lower() for file in files if not _kind(file).startswith("other")}
    for file in files:
        if file.suffix.lower() in known and _kind(file).startswith("other"):
            sniff.kind_of(file)


def _deeper(files):
    if not files:
        return []
    return [Note(f"files in folders below are left aside ({listed(files, 3)}); give a pattern such as FOLDER/*/*.csv")]


def _own(paths):
    """Files that people made: none of the system's, none that a program will remove again."""
    return sorted(file for file in paths if file.is_file() and not _is_system(file))


def _is_system(file):
    name = file.name.lower()
    hidden = name.startswith((".", "~$")) or name.endswith("~")
    return hidden or file.suffix.lower() in PASSING or any(part.lower() in SYSTEM for part in file.parts)


def _data(files):
    return [file for file in files if file.suffix.lower() not in DOCUMENTS or reader_of(file)]


def _texts(files):
    return [file for file in files if file.suffix.lower() == ".txt"]


def _kind(file):
    """The format of a file of a folder; "other" for one that svae does not read, if it is not the only kind."""
    try:
        return reader_of(file) or sniff.kind_of(file)
    except DataError:
        return f"other ({file.name})"
