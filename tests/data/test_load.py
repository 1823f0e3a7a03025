"""`load`: real files of every format, written here, and what becomes of their shapes, names and time."""

import json
import os
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import svae
from benchmarks import fuzz
from svae import data
from svae.data.readers import pieces

h5py = pytest.importorskip("h5py")
EXPECTED = {  # format -> number of recordings, frames, event, fps
    "npy": (1, 60, (5,), None), "npz": (1, 50, (9, 9), 30), "npz packed": (1, 50, (9, 9), 30),
    "csv": (1, 50, (4,), 10), "dlc csv": (1, 40, (4, 2), None), "hdf5": (1, 80, (6,), 25),
    "moseq": (1, 40, (20, 20), 30),
    "sleap": (2, 40, (4, 2), None), "jabs": (2, 40, (12, 2), 30), "dlc h5": (1, 40, (2, 2), None),
    "nwb": (1, 40, (3, 2), 30), "matlab": (1, 50, (3,), 20), "matlab 7.3": (1, 50, (3,), None),
    "netcdf": (1, 30, (4,), None), "parquet": (1, 50, (3,), None), "mp4": (1, 30, (24, 32), 25),
    "avi": (1, 30, (24, 32), 25), "ts": (4, 20, (2,), None), "bvh": (1, 19, (6,), 30), "idx": (1, 20, (8, 8), None),
    "idx.gz": (1, 20, (8, 8), None), "csv.gz": (1, 50, (4,), 10),
}  # fmt: skip


@pytest.mark.parametrize("kind", fuzz.WHOLE)
def test_every_format_is_known_by_its_content_not_by_its_name(kind, tmp_path):
    path = tmp_path / "mouse 3.bin"
    path.write_bytes(fuzz.WHOLE[kind]())
    found = svae.load(path)
    number, frames, event, fps = EXPECTED[kind]
    assert len(found.sequences) == number and found.sequences[0].shape == (frames, *event)
    assert found.fps is None if fps is None else abs(found.fps - fps) < 0.1
    assert all(name.startswith("mouse 3") for name in found.names)
    y = found.sequences[0]
    assert y[:].dtype in (np.float32, np.float64) and np.isfinite(y[:]).any()
    np.testing.assert_array_equal(np.concatenate([y[:7], y[7:]]), y[:])


def saved(path, array):
    np.save(path, array)
    return path


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float16, np.float32, np.int64, np.float64, bool, ">f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_round_trip_in_windows(tmp_path, dtype, order):
    y = np.asarray(np.random.default_rng(0).integers(0, 2, (37, 4, 5)) * 3, dtype, order=order)
    (view,) = svae.load(saved(tmp_path / "a.npy", y)).sequences
    np.testing.assert_array_equal(view[:], y.astype(float))
    np.testing.assert_array_equal(view[11:20], y[11:20].astype(float))


def test_npy_is_read_by_parts_and_a_file_that_shrinks_is_a_data_error(tmp_path):
    path = saved(tmp_path / "a.npy", np.arange(4000.0).reshape(1000, 4))
    (view,) = svae.load(path).sequences
    os.truncate(path, 20_000)
    assert view[:10].shape == (10, 4)
    with pytest.raises(svae.DataError, match=r"a\.npy could not be read any more"):
        view[900:]


def test_points_with_little_confidence_are_missing(tmp_path):
    y = np.random.default_rng(0).uniform(50, 90, (60, 5, 3))
    y[..., 2] = np.random.default_rng(1).random((60, 5))
    (view,) = svae.load(saved(tmp_path / "a.npy", y)).sequences
    assert view.shape == (60, 5, 2) and view.kind == "keypoints"
    np.testing.assert_array_equal(np.isnan(view[:]).all(-1), y[..., 2] < pieces.CONFIDENCE)


def archive(path, **arrays):  # noqa: RUF100
    np.savez(path, **arrays)
    return path


def test_npz_recordings_from_lengths_and_their_rate_from_the_hop(tmp_path):
    y = np.random.default_rng(0).normal(size=(30, 4))
    path = archive(tmp_path / "song.npz", logmel=y, length=np.array([10, 5, 15]), label=np.arange(30), hop_s=0.004)
    found = svae.load(path)
    assert [len(s) for s in found.sequences] == [10, 5, 15] and found.fps == 250
    np.testing.assert_array_equal(np.concatenate([s[:] for s in found.sequences]), y)
    assert found.names == ("song-0", "song-1", "song-2")


def test_arrays_alike_are_recordings_and_an_axis_of_animals_is_too(tmp_path):
    rng = np.random.default_rng(0)
    found = svae.load(
        archive(tmp_path / "a.npz", X_1=rng.normal(size=(20, 6)), X_2=rng.normal(size=(9, 6)), z_1=np.arange(20))
    )
    assert found.names == ("a-X_1", "a-X_2") and [len(y) for y in found.sequences] == [20, 9]
    y = rng.normal(size=(3, 50, 12, 2))
    found = svae.load(archive(tmp_path / "b.npz", xy=y))
    assert found.names == ("b-0", "b-1", "b-2") and found.sequences[1].shape == (50, 12, 2)
    np.testing.assert_array_equal(found.sequences[1][7:9], y[1, 7:9])
    assert svae.load(saved(tmp_path / "c.npy", rng.normal(size=(10, 64, 64)))).sequences[0].shape == (10, 64, 64)


def test_an_ambiguous_container_asks_for_a_name_and_takes_it(tmp_path):
    path = archive(tmp_path / "a.npz", left=np.zeros((50, 3)), right=np.ones((50, 4)))
    with pytest.raises(svae.DataError, match=r"--dataset NAME: left \(50, 3\), right \(50, 4\)"):
        svae.load(path)
    assert svae.load(path, dataset="right").sequences[0].shape == (50, 4)
    with pytest.raises(svae.DataError, match=r"no numbers named 'middle'; it has left"):
        svae.load(path, dataset="middle")


def test_hdf5_by_path_group_and_pattern_and_never_through_a_link(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        for i in range(3):
            file[f"day{i}/series"] = np.full((10 + i, 4), i)
            file[f"day{i}/other"] = np.zeros((500, 7))
        file["out"] = h5py.ExternalLink("/etc/passwd", "/x")
    assert svae.load(path, dataset="day1/series").sequences[0][:].tolist() == [[1] * 4] * 11
    assert svae.load(path, dataset="day*/series").names == ("a-day0", "a-day1", "a-day2")
    assert svae.load(path).sequences[0].shape == (500, 7)
    with pytest.raises(svae.DataError, match="no numbers named 'out'"):
        svae.load(path, dataset="out")


def test_matlab_73_axes_are_turned_back_lazily(tmp_path):
    y = np.random.default_rng(0).normal(size=(3, 40, 5))
    path = tmp_path / "a.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        file["X"] = y.T
    path.write_bytes(b"MATLAB 7.3 MAT-file".ljust(128) + path.read_bytes()[128:])
    found = svae.load(path)
    assert [s.shape for s in found.sequences] == [(40, 5)] * 3
    np.testing.assert_array_equal(found.sequences[2][4:9], y[2, 4:9])


def test_video_windows_equal_the_whole_in_any_order(tmp_path):
    path = tmp_path / "a.mp4"
    path.write_bytes(fuzz.video())
    (view,) = svae.load(path).sequences
    whole = view[:]
    assert whole[3].mean() < whole[20].mean() and view.kind == "frames"
    for first in (25, 0, 13, 29, 7):
        np.testing.assert_array_equal(view[first : first + 4], whole[first : first + 4])


CSV = {
    "a column of recordings": ("seq_id,a,b\n0,1,2\n0,3,4\n1,5,6\n", [2, 1], (2,), None),
    "dates": ("date,a\n2020-01-01 00:00:00,1\n2020-01-01 00:00:10,2\n2020-01-01 00:00:20,3\n", [3], (1,), 0.1),
    "no header, blanks": ("1 2 3\n4 5 6\n", [2], (3,), None),
    "semicolons": ("a;b\n1;2\n3;4\n", [2], (2,), None),
    "missing cells": ("a,b\n1,\n,NA\n3,4\n", [3], (2,), None),
    "words and labels are left out": ("species,a,is_anomaly\nx,1,0\ny,2,1\n", [2], (1,), None),
    "points": ("nose_x,nose_y,tail_x,tail_y\n1,2,3,4\n5,6,7,8\n", [2], (2, 2), None),
    "points with scores": ("n.x,n.y,n.score,t.x,t.y,t.score\n1,2,.9,3,4,.9\n5,6,.1,7,8,1\n", [2], (2, 2), None),
    "unicode": ("größe,数\n1,2\n3,4\n", [2], (2,), None),
}


@pytest.mark.parametrize("name", CSV)
def test_tables_of_many_kinds(name, tmp_path):
    text, lengths, event, fps = CSV[name]
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    found = svae.load(tmp_path / "t.csv")
    assert [len(y) for y in found.sequences] == lengths and found.sequences[0].shape[1:] == event
    assert found.fps == (None if fps is None else pytest.approx(fps))


def test_irregular_times_are_kept(tmp_path):
    (tmp_path / "t.csv").write_text("time,a\n0,1\n1,2\n2,3\n3,4\n9,5\n10,6\n")
    found = svae.load(tmp_path / "t.csv")
    assert data.seconds(found, 0).tolist() == [0, 1, 2, 3, 9, 10] and found.fps == 1
    assert data.seconds(svae.load(tmp_path / "t.csv", fps=2), 0).tolist() == [0, 0.5, 1, 1.5, 2, 2.5]


def test_a_folder_a_pattern_and_their_names(tmp_path):
    (tmp_path / "sub").mkdir()
    for name in ("b.csv", "a.csv", "sub/a.csv"):
        (tmp_path / name).write_text("x,y\n1,2\n3,4\n")
    (tmp_path / "README.md").write_text("# notes")
    assert svae.load(tmp_path).names == ("a", "b")
    assert svae.load(str(tmp_path / "**/a.csv")).names == ("a",)
    assert svae.load(f"{tmp_path}/*.csv").names == ("a", "b")
    saved(tmp_path / "c.npy", np.eye(4))
    with pytest.raises(svae.DataError, match=r"several kinds \(2 csv, 1 npy\)"):
        svae.load(tmp_path)


def test_objects_of_many_kinds():
    pandas, xarray = pytest.importorskip("pandas"), pytest.importorskip("xarray")
    y = np.random.default_rng(0).normal(size=(20, 3))
    same = [y, y.tolist(), pandas.DataFrame(y, columns=["a", "b", "c"]), xarray.DataArray(y.T, dims=("x", "time"))]
    for given in same:
        found = svae.load(given, fps=10)
        np.testing.assert_allclose(found.sequences[0][:], y)
        assert found.names == ("recording 0",) and found.fps == 10.0
    assert svae.load([y, y[:5]]).names == ("recording 0", "recording 1")
    assert svae.load({"../m": y, "b": y.astype(np.int8)}).names == ("_m", "b")
    assert svae.load(svae.load(y)).sequences[0].shape == (20, 3)
    timed = xarray.DataArray(y, dims=("time", "x"), coords={"time": np.arange(20) / 50})
    assert svae.load(timed).fps == pytest.approx(50)
    assert svae.load(xarray.Dataset({"y": timed, "label": ("time", np.arange(20))})).sequences[0].shape == (20, 3)
    columns = pandas.MultiIndex.from_product([["net"], ["nose", "ear", "tail"], ["x", "y", "likelihood"]])
    frame = pandas.DataFrame(np.tile([5.0, 6.0, 0.9], (8, 3)), columns=columns)
    assert svae.load(frame).sequences[0].shape == (8, 3, 2) and svae.load(frame).sequences[0].points == (
        "nose",
        "ear",
        "tail",
    )
    index = pandas.date_range("2020-01-01", periods=20, freq="100ms")
    assert svae.load(pandas.DataFrame(y, index=index, columns=list("abc"))).fps == pytest.approx(10)


HOPELESS = {
    "no such file": (lambda folder: folder / "nowhere.npy", "There is no file"),
    "a pattern without files": (lambda folder: folder / "*.npy", "No file matches"),
    "an empty folder": (lambda folder: folder, "holds no data files"),
    "objects": (lambda folder: np.array([{}, None]), "holds object values"),
    "words": (lambda folder: ["a", "b"], "not numbers"),
    "a number": (lambda folder: np.float64(3), "single number"),
    "no frames": (lambda folder: np.zeros((0, 3)), "0 frames"),
}


@pytest.mark.parametrize("name", HOPELESS)
def test_what_cannot_be_loaded_gets_one_sentence(name, tmp_path):
    make, sentence = HOPELESS[name]
    with pytest.raises(svae.DataError, match=sentence) as caught:
        svae.load(make(tmp_path))
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")


@pytest.mark.parametrize("fps", [0, -1, float("nan"), float("inf")])
def test_an_impossible_rate_is_refused(fps):
    with pytest.raises(svae.DataError, match="frame rate"):
        svae.load(np.eye(3), fps=fps)


def test_members_of_an_archive_never_name_files(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as file:
        for name in ("../../x.npy", "/y.npy"):
            file.writestr(name, fuzz.npy())
    names = svae.load(tmp_path / "a.npz").names
    assert all("/" not in name and ".." not in name.split("-") for name in names) and len(set(names)) == 2


def test_missing_packages_are_named_with_the_command_that_installs_them(tmp_path):
    for kind in ("hdf5", "mp4", "parquet"):
        (tmp_path / kind).write_bytes(fuzz.WHOLE[kind]())
    code = """
import sys, json
from svae import data
sys.modules.update(dict.fromkeys(("h5py", "av", "pyarrow")))
for path in sys.argv[1:]:
    try: data.load(path)
    except data.DataError as error: print(error)
"""
    paths = [str(tmp_path / kind) for kind in ("hdf5", "mp4", "parquet")]
    said = subprocess.check_output([sys.executable, "-c", code, *paths], text=True).splitlines()
    assert len(said) == 3 and all('pip install "svae[io]"' in line for line in said)
    assert json.dumps(said).count("needs the package") == 3
