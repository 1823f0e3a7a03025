"""What a file is, by its first bytes; its name is not asked."""

import zipfile
import zlib
from pathlib import Path

from ..recordings import DataError

MAGIC = {
    b"\x93NUMPY": "npy",
    b"PK\x03\x04": "npz",
    b"PK\x05\x06": "npz",
    b"PAR1": "parquet",
    b"\x1f\x8b": "gzip",
    b"CDF\x01": "netcdf",
    b"CDF\x02": "netcdf",
    b"\x1aE\xdf\xa3": "video",
    b"MATLAB 5.0": "matlab",
    b"\x00\x00\x08": "idx",
    b"\x80\x02": "pickle",
    b"\x80\x03": "pickle",
    b"\x80\x04": "pickle",
    b"\x80\x05": "pickle",
}
HDF5 = b"\x89HDF\r\n\x1a\n"
SHEET = "is an Excel workbook; save its sheet as csv and give that."
ADVICE = {
    b"\xd0\xcf\x11\xe0": SHEET,
    b"version https://git-lfs": "is a git-lfs pointer, not the data; fetch them with `git lfs pull`.",
    b"/annex/objects/": "is a git-annex pointer, not the data; fetch them with `git annex get`.",
    b"version https://hawser": "is a git-lfs pointer, not the data; fetch them with `git lfs pull`.",
    b"\xff\xfe": "is text in UTF-16, as Excel writes Unicode text; save it as csv in UTF-8.",
    b"\xfe\xff": "is text in UTF-16; save it as csv in UTF-8.",
    b"%PDF": "is a PDF; give the recording itself.",
    b"7z\xbc\xaf\x27\x1c": "is a 7z archive; unpack it and give the files.",
    b"Rar!": "is a rar archive; unpack it and give the files.",
}
OFFICE = {"xl/workbook.xml": SHEET, "xl/workbook.bin": SHEET, "word/document.xml": "is a Word document; give the data."}
KNOWN = "npy, npz, csv, parquet, HDF5, NWB, MATLAB, netCDF, DeepLabCut, SLEAP, JABS, mp4 and avi"


def kind_of(path: Path) -> str:
    """The name of a format that svae reads; DataError for any other file."""
    try:
        with open(path, "rb") as stream:
            head = stream.read(4096)
            hdf5 = head.startswith(HDF5) or _later(stream, HDF5)
    except OSError as error:
        raise DataError(f"{path} could not be read: {error.strerror or error}.") from None
    if not head:
        raise DataError(f"{path.name} is empty.")
    if hdf5:
        return "matlab73" if head.startswith(b"MATLAB 7.3") else "hdf5"
    for magic, advice in ADVICE.items():
        if head.startswith(magic):
            raise DataError(f"{path.name} {advice}")
    for magic, kind in MAGIC.items():
        if head.startswith(magic):
            return _readable(path, kind)
    if (head[:4] == b"RIFF" and head[8:12] == b"AVI ") or head[4:8] in (b"ftyp", b"moov", b"mdat", b"wide", b"free"):
        return "video"
    return _text(path, head)


def _later(stream, signature):
    """HDF5 may begin after a block of the user's own, at 512, 1024, ... bytes."""
    for place in (512, 1024, 2048):
        stream.seek(place)
        if stream.read(len(signature)) == signature:
            return True
    return False


def _readable(path, kind):
    if kind == "pickle":
        raise DataError(f"{path.name} is a pickle, which can run code when it is read; save it as .npy or .csv.")
    if kind == "npz":
        _require_no_office(path)
    return kind


def _require_no_office(path):
    """Workbooks are zip archives too."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist()[:1000])
            sheet = "mimetype" in names and b"spreadsheet" in archive.read("mimetype")[:100]
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError, zlib.error):
        return  # what is wrong with it is found when it is read
    for name, advice in OFFICE.items():
        if name in names:
            raise DataError(f"{path.name} {advice}")
    if sheet:
        raise DataError(f"{path.name} is an OpenDocument spreadsheet; save its sheet as csv and give that.")


def _text(path, head):
    if b"\x00" in head or sum(b < 9 or 13 < b < 32 for b in head) > 0:
        raise DataError(f"{path.name} is of no format that svae knows ({KNOWN}); convert it to one of them.")
    start = head.lstrip(b"\xef\xbb\xbf").lstrip()
    if start.startswith((b"#!OML:ASF", b":FULLY-SPECIFIED")):
        raise DataError(f"{path.name} is AMC motion capture, which svae does not read; convert it to BVH or csv.")
    if start.startswith((b"{", b"[{")):
        raise DataError(f"{path.name} is JSON, which svae does not read; {_json_advice(head)}.")
    if start.startswith((b"<?xml", b"<!DOCTYPE", b"<html")):
        raise DataError(f"{path.name} is XML or a web page, not a table; save the numbers as csv.")
    if start.startswith(b"HIERARCHY"):
        return "bvh"
    if b"\n@data" in head.lower() or start.lower().startswith((b"@problemname", b"@relation")):
        return "ts"
    return "csv"


def _json_advice(head):
    boris = b"observations" in head and (b"behaviors_conf" in head or b"subjects_conf" in head)
    return "it is a project of BORIS: give the video or keypoints that it describes" if boris else "save it as csv"
