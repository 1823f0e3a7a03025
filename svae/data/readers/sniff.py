"""What a file is, by its first bytes; its name is not asked."""

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
    return kind


def _text(path, head):
    if b"\x00" in head or sum(b < 9 or 13 < b < 32 for b in head) > 0:
        raise DataError(f"{path.name} is of no format that svae knows ({KNOWN}); convert it to one of them.")
    start = head.lstrip(b"\xef\xbb\xbf").lstrip()
    if start.startswith((b"#!OML:ASF", b":FULLY-SPECIFIED")):
        raise DataError(f"{path.name} is AMC motion capture, which svae does not read; convert it to BVH or csv.")
    if start.startswith(b"HIERARCHY"):
        return "bvh"
    if b"\n@data" in head.lower() or start.lower().startswith((b"@problemname", b"@relation")):
        return "ts"
    return "csv"
