"""What readers leave out, take for granted or change is said in a sentence; animals, points and time are never lost."""

import gzip
from pathlib import Path

import numpy as np
import pytest

import svae
from svae import data

h5py = pytest.importorskip("h5py")
HERE = Path(__file__).parent / "deeplabcut"
TWO = np.stack([100 * a + np.arange(12)[:, None] + 10 * a * np.arange(2) for a in (1, 2)])  # x of each animal and point


def deeplabcut(tmp_path, name):
    """A file with two animals, as pandas 3 wrote it."""
    path = tmp_path / name
    packed = HERE / f"{name}.gz"
    path.write_bytes(gzip.decompress(packed.read_bytes()) if packed.exists() else (HERE / name).read_bytes())
    return path


@pytest.mark.parametrize("name", ["two.csv", "two.h5", "fixed.h5"])
def test_every_animal_of_a_deeplabcut_file_is_a_recording_named_after_it(name, tmp_path):
    found = svae.load(deeplabcut(tmp_path, name))
    stem = name.partition(".")[0]
    assert found.names == (f"{stem}-mouse1", f"{stem}-mouse2")
    for y, start in zip(found.sequences, (100, 200), strict=True):
        assert y.points == ("nose", "tail") and y.shape == (12, 2, 2)
        np.testing.assert_allclose(y[:][:3, 0, 0], start + np.arange(3))
    assert np.isnan(found.sequences[0][:][3, 1]).all() and "confidence below 0.3" in found.notes[0]
    assert any("recordings of their own: mouse1, mouse2" in note for note in found.notes)


def test_a_multi_animal_frame_in_memory_keeps_its_animals(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(deeplabcut(tmp_path, "two.csv"), header=[0, 1, 2, 3], index_col=0)
    assert svae.load(frame).names == ("recording 0-mouse1", "recording 0-mouse2")
    without = frame.droplevel("scorer", axis=1)
    assert svae.load(without).names == ("recording 0-mouse1", "recording 0-mouse2")


def test_an_animal_that_is_never_seen_and_points_of_no_animal_are_named(tmp_path):
    head = ["scorer" + ",net" * 9, "individuals" + ",a" * 3 + ",b" * 3 + ",single" * 3]
    head += ["bodyparts" + ",nose" * 3 + ",nose" * 3 + ",lever" * 3, "coords" + ",x,y,likelihood" * 3]
    rows = [f"{t},1,{t},.9,,,,5,5,.9" for t in range(12)]
    (tmp_path / "m.csv").write_text("\n".join([*head, *rows]))
    found = svae.load(tmp_path / "m.csv")
    assert found.names == ("m-a",)
    assert any("animal that is never seen b" in n for n in found.notes) and any("lever" in n for n in found.notes)


def table(tmp_path, text, **options):
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    return svae.load(tmp_path / "t.csv", **options)


def rows(columns, number=12):
    return "".join(",".join(str(c(t)) for c in columns) + "\n" for t in range(number))


def test_keypoints_are_found_among_other_columns_which_are_named(tmp_path):
    names = [f"{point}_{axis}" for point in ("nose", "ear", "tail") for axis in "xy"]
    found = table(tmp_path, ",".join([*names, "stim"]) + "\n" + rows([lambda t: t] * 6 + [lambda t: t % 2]))
    assert found.sequences[0].shape == (12, 3, 2) and found.sequences[0].points == ("nose", "ear", "tail")
    assert found.notes[-1] == "t.csv: the column stim is left aside."
    asked = table(tmp_path, (tmp_path / "t.csv").read_text(), dataset="nose,tail")
    assert asked.sequences[0].points == ("nose", "tail")
    assert table(tmp_path, (tmp_path / "t.csv").read_text(), dataset="nose_x,stim").sequences[0].shape == (12, 2)


@pytest.mark.parametrize(
    "header", ["x_nose,y_nose,x_ear,y_ear", "noseX,noseY,earX,earY", "nose x (mm),nose y (mm),ear x (mm),ear y (mm)"]
)
def test_coordinates_by_the_names_that_people_give_them(header, tmp_path):
    y = table(tmp_path, header + "\n" + rows([lambda t: t] * 4)).sequences[0]
    assert y.points == ("nose", "ear") and y.unit == ("mm" if "mm" in header else "")


def test_sensors_and_few_points_among_many_columns_stay_columns(tmp_path):
    header = ",".join(f"{s}_{a}" for s in ("acc", "gyro", "mag") for a in "xyz")
    y = table(tmp_path, header + "\n" + rows([lambda t: t] * 9)).sequences[0]
    assert y.shape == (12, 9) and y.columns[0] == "acc_x"
    header = "a_x,a_y,b_x,b_y," + ",".join(f"f{i}" for i in range(9))
    assert table(tmp_path, header + "\n" + rows([lambda t: t] * 13)).sequences[0].shape == (12, 13)


SAID = {  # header and columns -> what is said
    "text": ("a,strain", [lambda t: t, lambda t: "wt"], "the column of text strain is left aside"),
    "labels": ("a,label", [lambda t: t, lambda t: t % 2], "the column of labels label is left aside"),
    "empty": ("a,b", [lambda t: t, lambda t: ""], "the empty column b is left aside"),
    "time repeats": ("time,a", [lambda t: t // 2, lambda t: t], "its times repeat 6 times, first at frame 1"),
    "time goes back": ("time,a", [lambda t: (t % 8) / 10, lambda t: t], "go back 1 times, first at frame 8; they"),
    "time missing": ("time,a", [lambda t: "" if t == 4 else t, lambda t: t], "missing in 1 frames, first at frame 4"),
    "time late": ("time,a", [lambda t: 7 + t, lambda t: t], "its times begin at 7 s, which is 0 here"),
    "time uneven": ("time,a", [lambda t: t + 9 * (t > 5), lambda t: t], "times are uneven: 1 steps differ from 1 s"),
    "two times": ("time,timestamp,a", [lambda t: t] * 3, "the further column of times timestamp is left aside"),
    "time in words": ("time,a", [lambda t: f"t{t}", lambda t: t], "column of times time is left aside: 't0' in row 2"),
    "frames jump": ("frame,a", [lambda t: t + 5 * (t > 3), lambda t: t], r"\(frame\) jump 1 times, by up to 6"),
    "frames repeat": ("frame,a", [lambda t: t // 2, lambda t: t], r"frame numbers \(frame\) repeat or go back 6 times"),
    "two names": ("a,a", [lambda t: t] * 2, "columns of one name are called a.1"),
    "animals": ("animal,day,a", [lambda t: t % 2, lambda t: 1, lambda t: t], "its rows are 2 recordings, by animal"),
    "numbers as a header": (",0,1,2", [lambda t: t] * 4, "counts the columns and is their header"),
}  # fmt: skip


@pytest.mark.parametrize("name", SAID)
def test_what_is_odd_in_a_table_is_said(name, tmp_path):
    import re

    header, columns, said = SAID[name]
    found = table(tmp_path, header + "\n" + rows(columns))
    assert sum(bool(re.search(said, note)) for note in found.notes) == 1, found.notes
    assert all(note.startswith("t.csv: ") and note.endswith(".") and "\n" not in note for note in found.notes)
    assert sum(map(len, found.sequences)) == 12


def test_a_clean_table_says_nothing(tmp_path):
    assert (
        table(tmp_path, "time,frame,a,b\n" + rows([lambda t: t / 30, lambda t: t, lambda t: t, lambda t: -t])).notes
        == ()
    )


def test_a_frame_of_empty_cells_stays_a_frame(tmp_path):
    found = table(tmp_path, "a,b\n1,2\n,\n3,4\n")
    np.testing.assert_array_equal(found.sequences[0][:], [[1, 2], [np.nan, np.nan], [3, 4]])


def test_decimal_commas_between_semicolons(tmp_path):
    found = table(tmp_path, "a;b\n1,5;2\n2,5;3,25\n")
    np.testing.assert_array_equal(found.sequences[0][:], [[1.5, 2], [2.5, 3.25]])
    assert "decimal commas" in found.notes[0]


def test_two_columns_of_names_make_a_recording_of_each_pair(tmp_path):
    found = table(tmp_path, "session,animal,a\n" + rows([lambda t: t // 6, lambda t: t % 2, lambda t: t]))
    assert found.names == ("t-0-0", "t-0-1", "t-1-0", "t-1-1")
    np.testing.assert_array_equal(found.sequences[1][:].ravel(), [1, 3, 5])


def test_milliseconds_are_milliseconds(tmp_path):
    assert table(tmp_path, "time (ms),a\n" + rows([lambda t: 20 * t, lambda t: t])).fps == pytest.approx(50)


WRONG = {
    "BORIS": ("Behavior,Behavior type,Time\ngroom,START,1\ngroom,STOP,2\n", "table of behaviours as BORIS"),
    "BORIS, aggregated": ("Behavior,Start (s),Stop (s)\ngroom,1,2\nrear,2,3\n", "table of bouts"),
    "BORIS, with a head": ("Observation id,m1\nMedia file(s),a.mp4\nTime,Behavior,Status\n1,groom,START\n", "BORIS"),
    "one row a point": ("frame,bodypart,x,y\n0,nose,1,2\n0,tail,3,4\n", "one row for each point"),
    "git-lfs": ("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", "git lfs pull"),
    "JSON": ('{"project": "x"}', "is JSON"),
    "a web page": ("<!DOCTYPE html>\n<html></html>", "web page"),
    "a swapped unit": ("a_x_mm,a_y_px,b_x,b_y\n1,2,3,4\n1,2,3,5\n", "several units"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_recording_gets_the_right_advice(name, tmp_path):
    text, said = WRONG[name]
    with pytest.raises(svae.DataError, match=said) as caught:
        table(tmp_path, text)
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")


def test_an_excel_workbook_is_called_one(tmp_path):
    import zipfile

    with zipfile.ZipFile(tmp_path / "a.xlsx", "w") as file:
        file.writestr("[Content_Types].xml", "<Types/>")
        file.writestr("xl/workbook.xml", "<workbook/>")
    with pytest.raises(svae.DataError, match="Excel workbook; save its sheet as csv"):
        svae.load(tmp_path / "a.xlsx")
    (tmp_path / "a.xls").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512))
    with pytest.raises(svae.DataError, match="Excel workbook"):
        svae.load(tmp_path / "a.xls")


def test_files_of_the_system_are_no_data_and_others_are_named(tmp_path):
    for name in ("Thumbs.db", "desktop.ini", "._a.csv", ".DS_Store", "~$a.xlsx", "a.csv.tmp", "a.csv~"):
        (tmp_path / name).write_bytes(b"\x00\x01")
    for name in ("a.csv", "notes.txt", "sub/b.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x,y\n1,2\n3,4\n")
    found = svae.load(tmp_path)
    assert found.names == ("a",)
    assert found.notes[0] == "The file notes.txt is left aside." and "folders below" in found.notes[1]


def many(tmp_path, **texts):
    for name, text in texts.items():
        (tmp_path / f"{name}.csv").write_text(text)
    return tmp_path


def points(order, shift=0):
    return (
        ",".join(f"{p}_{a}" for p in order for a in "xy")
        + "\n"
        + rows([lambda t, p=p, a=a: 10 * ord(p[0]) + a + t + shift for p in order for a in (0, 1)])
    )


def test_points_in_another_order_are_put_into_the_first_and_other_sets_are_refused(tmp_path):
    found = svae.load(many(tmp_path, a=points(["nose", "ear", "tail"]), b=points(["tail", "nose", "ear"])))
    np.testing.assert_array_equal(found.sequences[0][:], found.sequences[1][:])
    assert "b are put into the order of a" in found.notes[0]
    with pytest.raises(
        svae.DataError, match=r"b has paw, which a has not and a has tail, which b has not; take what all"
    ):
        svae.load(many(tmp_path, b=points(["paw", "nose", "ear"])))
    assert svae.load(tmp_path, dataset="nose,ear").sequences[1].points == ("nose", "ear")


def test_two_rates_in_a_folder_are_refused_and_nearly_one_rate_is_one(tmp_path):
    at = lambda rate: "time,a\n" + rows([lambda t: t / rate, lambda t: t], 200)  # noqa: E731
    with pytest.raises(svae.DataError, match="a has 30 frames per second but b has 60, and a model has one clock"):
        svae.load(many(tmp_path, a=at(30), b=at(60)))
    assert (
        svae.load(tmp_path, fps=30).fps == 30
        and "as given, not as the files say: b (60)" in svae.load(tmp_path, fps=30).notes[0]
    )
    found = svae.load(many(tmp_path, b=at(30.3)))
    assert found.fps == pytest.approx(30.15) and data.seconds(found, 1)[-1] == pytest.approx(199 / 30.3)
    found = svae.load(many(tmp_path, b="a\n" + rows([lambda t: t])))
    assert found.fps == pytest.approx(30) and "without a frame rate (b) are taken to have 30" in found.notes[-1]


def test_a_second_data_set_is_named_and_times_beside_an_array_are_used(tmp_path):
    y = np.random.default_rng(0).normal(size=(50, 9))
    np.savez(tmp_path / "a.npz", signal=y, other=y[:, :2], label=np.arange(50), time=np.arange(50) / 20)
    found = svae.load(tmp_path / "a.npz")
    assert found.fps == pytest.approx(20)
    assert found.notes == ("a.npz: the datasets other (50, 2), label (50,) are left aside.",)


def test_a_track_begins_where_it_began_in_its_file(tmp_path):
    tracks = np.full((2, 2, 3, 60), np.nan)
    tracks[0, :, :, 20:50] = np.random.default_rng(0).normal(size=(2, 3, 30)) + 100
    tracks[1, :, :, :5] = 1.0
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["tracks"], file["node_names"] = tracks, np.array([b"a", b"b", b"c"])
        file["track_names"], file["track_occupancy"] = np.array([b"one", b"two"]), np.ones((60, 2))
    found = svae.load(tmp_path / "a.h5", fps=10)
    np.testing.assert_allclose(data.seconds(found, 0), 2 + np.arange(30) / 10)
    assert any("track seen in fewer than 10 frames two" in note for note in found.notes)
    assert "begin later than their file: a at frame 20" in svae.load(tmp_path / "a.h5").notes[-1]
