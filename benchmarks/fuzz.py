"""Broken files of every format that `svae.load` knows: each must load, or end in a DataError of one sentence.

    python benchmarks/fuzz.py [--cases 2400] [--seed 0]

A case is a number: the same number and seed make the same file. Files are read in worker processes under a limit of
address space, and their peak memory is watched. Prints counts; the exit code is 1 if any case ended otherwise.
"""

import argparse
import collections
import gzip
import io
import json
import os
import resource
import struct
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import numpy as np

LIMIT = 6 * 2**30  # bytes of address space of a worker
MOST_MEMORY = 600  # MiB that a worker may grow by
SLOWEST = 20.0  # seconds for one file


# --- whole files --------------------------------------------------------------------------------------------------


def points(T=40, P=4):
    return np.cumsum(np.random.default_rng(1).normal(size=(T, P, 2)), 0) * 10 + 200


def npy():
    stream = io.BytesIO()
    np.save(stream, np.random.default_rng(0).normal(size=(60, 5)))
    return stream.getvalue()


def npz(save=np.savez):
    stream = io.BytesIO()
    save(stream, frames=np.random.default_rng(0).integers(0, 255, (50, 9, 9), np.uint8), fps=30, label=np.arange(50))
    return stream.getvalue()


def csv():
    rows = np.random.default_rng(0).normal(size=(50, 4))
    text = "time,a,b,c,d\n" + "".join(
        f"{t / 10},{a:.4f},{b:.4f},{c:.4f},{d:.4f}\n" for t, (a, b, c, d) in enumerate(rows)
    )
    return text.encode()


def deeplabcut_csv():
    names, y = ["nose", "ear", "back", "tail"], points()
    head = ["scorer"] + ["net"] * 12, ["bodyparts"] + [n for n in names for _ in "xyl"]
    head = [*head, ["coords"] + ["x", "y", "likelihood"] * 4]
    rows = [[str(t)] + [f"{v:.3f}" for p in frame for v in (*p, 0.9)] for t, frame in enumerate(y)]
    return "\n".join(",".join(row) for row in [*head, *rows]).encode()


def in_hdf5(fill, userblock=0):
    import h5py

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.h5"
        with h5py.File(path, "w", userblock_size=userblock) as file:
            fill(file)
        return path.read_bytes()


def hdf5():
    def fill(file):
        file.create_dataset(
            "a/series", data=np.random.default_rng(0).normal(size=(80, 6)), chunks=(16, 6), compression=4
        )
        file["fps"] = 25.0

    return in_hdf5(fill)


def moseq():
    def fill(file):
        frames = np.random.default_rng(0).integers(0, 90, (40, 20, 20), np.uint8)
        file.create_dataset("frames", data=frames, chunks=(8, 20, 20), compression=4)
        file["timestamps"] = np.arange(40) * 33.3
        file["metadata/extraction/parameters/fps"] = 30

    return in_hdf5(fill)


def sleap():
    def fill(file):
        file["tracks"] = np.moveaxis(np.stack([points(), points() + 5]), (1, 2, 3), (3, 2, 1))
        file["node_names"] = np.array([b"head", b"thorax", b"wing", b"tail"])
        file["track_names"] = np.array([b"a", b"b"])
        file["track_occupancy"] = np.ones((40, 2), np.uint8)

    return in_hdf5(fill)


def jabs():
    def fill(file):
        file["poseest/points"] = np.tile(points(40, 12)[:, None], (1, 2, 1, 1)).astype(np.uint16)
        file["poseest/confidence"] = np.full((40, 2, 12), 0.8, np.float32)
        file["poseest/instance_embed_id"] = np.tile(np.array([1, 2], np.uint32), (40, 1))
        file["poseest/id_mask"] = np.zeros((40, 2), bool)
        file["poseest/instance_count"] = np.full(40, 2, np.uint8)

    return in_hdf5(fill)


def deeplabcut_h5():
    def fill(file):
        table = np.zeros(40, [("index", "<i8"), ("values_block_0", "<f8", (6,))])
        table["values_block_0"] = np.concatenate([points(40, 2), np.ones((40, 2, 1))], -1).reshape(40, 6)
        item = file.create_dataset("df_with_missing/table", data=table, chunks=(10,))
        words = b"(lp0\n(Vnet\np1\nVnose\np2\nVx\np3\ntp4\na(g1\ng2\nVy\np5\ntp6\na(g1\ng2\nVlikelihood\np7\ntp8\n"
        words += b"a(g1\nVtail\np9\ng3\ntp10\na(g1\ng9\ng5\ntp11\na(g1\ng9\ng7\ntp12\na."
        item.attrs["values_block_0_kind"] = np.bytes_(words)

    return in_hdf5(fill)


def nwb():
    def fill(file):
        for name, y in zip(("nose", "tail", "ear"), points(40, 3).swapaxes(0, 1), strict=True):
            group = file.create_group(f"processing/behavior/PoseEstimation/{name}")
            group.attrs["neurodata_type"] = "PoseEstimationSeries"
            group["data"], group["confidence"], group["timestamps"] = y, np.ones(40), np.arange(40) / 30
        file["processing/behavior/PoseEstimation"].attrs["neurodata_type"] = "PoseEstimation"

    return in_hdf5(fill)


def matlab():
    import scipy.io

    stream = io.BytesIO()
    held = {"Y": np.random.default_rng(0).normal(size=(50, 3)), "label": np.arange(50.0), "fps": 20.0}
    scipy.io.savemat(stream, held, do_compression=True)
    return stream.getvalue()


def matlab73():
    def fill(file):
        file["Y"] = np.random.default_rng(0).normal(size=(3, 50))

    data = in_hdf5(fill, userblock=512)
    return b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM" + data[128:]


def netcdf():
    import scipy.io

    stream = io.BytesIO()
    file = scipy.io.netcdf_file(stream, "w")
    file.createDimension("time", 30)
    file.createDimension("x", 4)
    file.createVariable("y", "f8", ("time", "x"))[:] = np.random.default_rng(0).normal(size=(30, 4))
    file.flush()
    return stream.getvalue()


def parquet():
    import pyarrow
    import pyarrow.parquet

    stream = io.BytesIO()
    columns = np.random.default_rng(0).normal(size=(3, 50))
    pyarrow.parquet.write_table(pyarrow.table(dict(zip("abc", columns, strict=True))), stream)
    return stream.getvalue()


def video(kind="mp4", codec="mpeg4"):
    import av

    stream = io.BytesIO()
    with av.open(stream, "w", format=kind) as container:
        track = container.add_stream(codec, rate=25)
        track.width, track.height, track.pix_fmt = 32, 24, "yuvj420p" if codec == "mjpeg" else "yuv420p"
        for i in range(30):
            picture = np.full((24, 32, 3), i * 8, np.uint8)
            picture[i % 24] = 255
            container.mux(track.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(track.encode())
    return stream.getvalue()


def ts():
    series = [":".join(",".join(f"{v:.3f}" for v in c) for c in points(20, 2)[:, :, 0].T) + ":1" for _ in range(4)]
    return ("@problemName a\n@classLabel true 1 2\n@data\n" + "\n".join(series)).encode()


def bvh():
    rows = "\n".join(" ".join(f"{v:.3f}" for v in frame.ravel()) for frame in points(20, 3))
    return f"HIERARCHY\nROOT a\n{{\n}}\nMOTION\nFrames: 20\nFrame Time: 0.0333\n{rows}\n".encode()


def idx():
    return b"\x00\x00\x08\x03" + struct.pack(">3I", 20, 8, 8) + np.random.default_rng(0).bytes(20 * 64)


WHOLE = {
    "npy": npy, "npz": npz, "npz packed": lambda: npz(np.savez_compressed), "csv": csv, "dlc csv": deeplabcut_csv,
    "hdf5": hdf5, "moseq": moseq, "sleap": sleap, "jabs": jabs, "dlc h5": deeplabcut_h5, "nwb": nwb, "matlab": matlab,
    "matlab 7.3": matlab73, "netcdf": netcdf, "parquet": parquet, "mp4": video, "avi": lambda: video("avi", "mjpeg"),
    "ts": ts, "bvh": bvh, "idx": idx, "idx.gz": lambda: gzip.compress(idx()), "csv.gz": lambda: gzip.compress(csv()),
}  # fmt: skip


# --- damage -------------------------------------------------------------------------------------------------------


def truncated(data, rng):
    return data[: int(rng.integers(0, len(data)))]


def flipped(data, rng):
    out = bytearray(data)
    for place in rng.integers(0, len(out), int(rng.choice([1, 4, 30]))):
        out[place] ^= 1 << int(rng.integers(8))
    return bytes(out)


def flipped_head(data, rng):
    size = min(len(data), 600)
    return flipped(data[:size], rng) + data[size:]


def overwritten(data, rng):
    first = int(rng.integers(0, len(data)))
    length = int(rng.choice([1, 4, 8, 64, 1000]))
    filler = [b"\xff", b"\x00", b"\x7f", rng.bytes(1)][int(rng.integers(4))]
    return data[:first] + filler * min(length, len(data) - first) + data[first + length :]


def inserted(data, rng):
    first = int(rng.integers(0, len(data)))
    return data[:first] + rng.bytes(int(rng.choice([1, 7, 300]))) + data[first:]


def removed(data, rng):
    first = int(rng.integers(0, len(data)))
    return data[:first] + data[first + int(rng.choice([1, 3, 100])) :]


def wrong_magic(data, rng):
    others = [
        b"\x93NUMPY\x01\x00",
        b"PK\x03\x04",
        b"\x89HDF\r\n\x1a\n",
        b"PAR1",
        b"RIFF\x00\x00\x00\x00AVI ",
        b"CDF\x01",
    ]
    other = others[int(rng.integers(len(others)))]
    return other + data[len(other) :]


DAMAGE = [truncated, flipped, flipped_head, overwritten, inserted, removed, wrong_magic]


# --- hostile files ------------------------------------------------------------------------------------------------


def npy_with_header(text, body=b"\x00" * 400):
    head = text.encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", min(len(head), 65535)) + head[:65535] + body


def absurd_npy(rng):
    shapes = [(10**18, 4), (-5, 4), (4, 2**60), (99999999999, 99999999999), (), (3,), (0, 4), (5, 0)]
    shape = shapes[int(rng.integers(len(shapes)))]
    kind = rng.choice(["<f8", "|O", "<U9", "<M8[s]", "<c16", "|V8", "<f4", "[('a', '<f8')]", "<f99", "?"])
    kind = kind if kind.startswith("[") else f"'{kind}'"
    return npy_with_header(
        f"{{'descr': {kind}, 'fortran_order': {rng.choice(['True', 'False', '7'])}, 'shape': {shape}, }}\n"
    )


def huge_header(rng):
    return npy_with_header("{'descr': '<f8', 'shape': (" + "1," * int(rng.integers(1000, 30000)) + ")}")


def deep_header(rng):
    return npy_with_header("{'descr': " + "(" * int(rng.integers(50, 9000)) + "}")


def object_npy(rng):
    head = f"{{'descr': '|O', 'fortran_order': False, 'shape': ({int(rng.integers(1, 50))},), }}\n"
    return npy_with_header(head, b"\x80\x04\x95" + rng.bytes(300))


def object_npz(rng):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a.npy", object_npy(rng))
        if rng.random() < 0.5:
            archive.writestr("b.npy", npy())
    return stream.getvalue()


def zip_bomb(rng):
    stream = io.BytesIO()
    size = int(rng.choice([2**20, 2**26]))
    head = npy_with_header(f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({size}, 4096), }}\n", b"")
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("frames.npy", head + b"\x00" * 2**20)
    return lying_sizes(stream.getvalue(), len(head) + size * 4096) if rng.random() < 0.7 else stream.getvalue()


def lying_sizes(data, size):
    """The same archive whose index says that its first member is `size` bytes long."""
    out, place = bytearray(data), data.rindex(b"PK\x01\x02")
    out[place + 24 : place + 28] = struct.pack("<I", min(size, 2**32 - 2))
    return bytes(out)


def many_members(rng):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for i in range(int(rng.integers(10, 3000))):
            archive.writestr(f"{i}.npy", npy()[:200])
    return stream.getvalue()


def dotted_members(rng):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in ("../../../etc/x.npy", "/root/y.npy", "..\\z.npy", "a\x00b.npy", "\u202e\u00e9\u4e2d.npy"):
            archive.writestr(name, npy())
    return stream.getvalue()


def gzip_bomb(rng):
    return gzip.compress(
        b"\x00\x00\x08\x03" + struct.pack(">3I", 2**31, 100, 100) + b"\x00" * int(rng.choice([2**20, 2**27]))
    )


def hdf5_trap(rng):
    """A file of some kilobytes that declares terabytes, points elsewhere, or holds what is no number."""
    import h5py

    def fill(file):
        which = int(rng.integers(8))
        if which == 0:
            file.create_dataset("y", (10**9, 1000), "f8", chunks=(100, 1000))
        elif which == 1:
            file.create_dataset("y", (10, 10**11), "f8", chunks=(1, 10**6))
        elif which == 2:
            file["y"] = h5py.ExternalLink("/etc/passwd", "/a")
        elif which == 3:
            file["y"] = h5py.SoftLink("/y")
        elif which == 4:
            file.create_dataset("y", data=np.array(["a", "b"], object), dtype=h5py.string_dtype())
        elif which == 5:
            file.create_dataset("y", (100, 5), "f4", external=[("/etc/hostname", 0, 10**6)])
        elif which == 6:
            file.create_dataset("tracks", (10**6, 2, 13, 10**6), "f8", chunks=(1, 2, 13, 100))
            file["node_names"], file["track_occupancy"] = np.array([b"a"] * 13), np.ones(3)
        else:
            file["a"] = file["/"]  # a circle

    return in_hdf5(fill)


def odd_values(rng):
    y = rng.normal(size=(40, 3))
    y[rng.integers(40), rng.integers(3)] = rng.choice([np.nan, np.inf, -np.inf, 1e300, 1e-300])
    if rng.random() < 0.3:
        y[:] = rng.choice([np.nan, np.inf, 0.0])
    stream = io.BytesIO()
    np.save(stream, y)
    return stream.getvalue()


def odd_text(rng):
    texts = [
        "a,b\n1,2\n3\n", "a,b\n1,x\n2,y\n", "a,b\n", ",,,\n,,,\n", '"unclosed,1,2\n3,4\n', "1,2\n" * 3 + "1,zwei\n",
        "a" * 10**6, "1" * 400 + ",2\n3,4\n", "time,a\n5,1\n4,2\n3,9\n", "a,b\ninf,1\n2,3\n", "start,stop\n1,2\n",
        "\ufeff\u540d,\u5024\n1,2\n3,4\n", "1e999,2\n3,4\n", "x_x,x_y\n1,2\n3,4\n", "\n\n\n", "0\n",
        "scorer,a\nbodyparts,b\ncoords,x\n0,1\n", "scorer,a,a\nbodyparts,b,b\ncoords,x,y\n0,1,?\n", "@data\n1,2:3\n",
        "@problemName a\n@data\n1,2:3,4\n1:a\n", "HIERARCHY\nMOTION\nFrames: 9\nFrame Time: x\n1 2\n1 2\n1 2\n",
    ]  # fmt: skip
    return texts[int(rng.integers(len(texts)))].encode()


def noise(rng):
    return rng.bytes(int(rng.integers(0, 5000)))


def pickled(rng):
    return b"\x80\x04\x95" + rng.bytes(100)


HOSTILE = [absurd_npy, huge_header, deep_header, object_npy, object_npz, zip_bomb, many_members, dotted_members,
           gzip_bomb, hdf5_trap, odd_values, odd_text, noise, pickled]  # fmt: skip
NAMES = ["a.npy", "..npy", "\u00fc\u00f1\u00ed \u4e2d\u6587.h5", "a b.csv", "-rf.mp4", "x" * 200 + ".npz", ".. .mat",
         "con.csv", "a\nb.npy", "\u202eback.avi", "noend", "'quote\".parquet", "%s%n.npy", "$(id).csv"]  # fmt: skip


def case(number: int, seed: int) -> tuple[str, str, bytes]:
    """(what it is, file name, bytes) of one case; two of three are damaged files, one is hostile."""
    rng = np.random.default_rng([seed, number])
    name = NAMES[int(rng.integers(len(NAMES)))]
    if number % 3 == 2:
        make = HOSTILE[number // 3 % len(HOSTILE)]
        return make.__name__, name, make(rng)
    kind = list(WHOLE)[(number // 3 * 2 + number % 3) % len(WHOLE)]
    damage = DAMAGE[int(rng.integers(len(DAMAGE)))]
    return f"{kind} {damage.__name__}", name, damage(whole(kind), rng)


_MADE = {}


def whole(kind):
    if kind not in _MADE:
        _MADE[kind] = WHOLE[kind]()
    return _MADE[kind]


# --- reading ------------------------------------------------------------------------------------------------------


def outcome(path: Path) -> str:
    """ "loaded", or the sentence of the DataError; any other exception is for the caller."""
    from svae import data

    try:
        found = data.load(path)
        data.check(found)
        for y in found.sequences:
            np.asarray(y[: min(len(y), 50)])
        assert all(name and "/" not in name and "\\" not in name and name != ".." for name in found.names)
        assert len(set(found.names)) == len(found.names)
    except data.DataError as error:
        assert "\n" not in str(error).strip() or "\n" in path.name, str(error)
        return str(error)
    return "loaded"


def work(first: int, last: int, seed: int) -> None:
    """Read cases first, ..., last - 1 and print one line of JSON each."""
    import svae.data  # noqa: F401

    for kind in WHOLE:
        whole(kind)  # what making files takes is not what reading them takes
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    with tempfile.TemporaryDirectory() as folder:
        for number in range(first, last):
            what, name, data = case(number, seed)
            path = Path(folder) / name
            path.write_bytes(data)
            print(json.dumps({"case": number, "what": what, "began": True}), flush=True)
            before, started = peak(), time.monotonic()
            try:
                said = outcome(path)
            except BaseException as error:
                said = f"FAILED {type(error).__name__}: {error}"
            done = {
                "case": number,
                "what": what,
                "said": said,
                "grew": peak() - before,
                "took": time.monotonic() - started,
            }
            print(json.dumps(done), flush=True)
            path.unlink()


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def campaign(cases: int, seed: int, each: int = 200) -> list[dict]:
    """All cases, in worker processes of `each`; a worker that dies is a failure of the case it was at."""
    found, first = [], 0
    while first < cases:
        last = min(first + each, cases)
        command = [sys.executable, __file__, "--work", str(first), str(last), "--seed", str(seed)]
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
        run = subprocess.run(command, capture_output=True, text=True, env=environment)
        lines = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
        found += [line for line in lines if "said" in line]
        done = {line["case"] for line in lines if "said" in line}
        began = [line for line in lines if line["case"] not in done]
        if began:
            found.append(began[0] | {"said": f"FAILED worker died with {run.returncode}", "grew": 0, "took": 0})
        elif len(done) < last - first:
            raise SystemExit(run.stderr)
        first = max([*done, *(line["case"] for line in began)]) + 1
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=2400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", type=int, nargs=2, default=None)
    arguments = parser.parse_args()
    if arguments.work:
        work(*arguments.work, arguments.seed)
        return
    found = campaign(arguments.cases, arguments.seed)
    failed = [f for f in found if f["said"].startswith("FAILED") or f["grew"] > MOST_MEMORY or f["took"] > SLOWEST]
    counts = collections.Counter("loaded" if f["said"] == "loaded" else "DataError" for f in found if f not in failed)
    for f in failed:
        print(f)
    print(f"{len(found)} cases: {dict(counts)}, {len(failed)} failed")
    print(f"largest growth {max(f['grew'] for f in found):.0f} MiB, slowest {max(f['took'] for f in found):.1f} s")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
