"""Folders as people have them: each must load with its meaning whole, or what is odd must be said in a sentence.

    python -m benchmarks.messy_folders [--folders 100] [--seed 0]

A folder is a number: the same number and seed make the same files. It holds three recordings of an animal with five
points, and one to three kinds of mess. What is loaded is compared with what was written, by the names of recordings and
points; a mess that changes what the numbers mean must be named by a note, a doubt of `check`, or a refusal. A change of
meaning of which nothing is said is a failure, and the exit code is then 1.
"""

import argparse
import collections
import dataclasses
import re
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

POINTS = ("nose", "left_ear", "right_ear", "spine", "tail")
BODY = np.array([[4.0, 0.0], [2.0, 1.5], [2.0, -1.5], [-1.0, 0.0], [-5.0, 0.0]]) * 10
RATE = 30.0
REFUSED = "refused: "  # and words of the sentence


@dataclasses.dataclass
class Recording:
    """One file before it is written; `truth` is what must be read from it, by point."""

    name: str
    xy: np.ndarray  # (T, P, 2)
    points: tuple[str, ...] = POINTS
    time: np.ndarray | None = None
    before: dict = dataclasses.field(default_factory=dict)  # further columns: name -> cells
    likelihood: np.ndarray | None = None
    divider: str = ","
    time_name: str = "time"
    missing: np.ndarray | None = None  # (T, P): what must be missing
    gone: str = ""  # what is written for it
    changes: list = dataclasses.field(default_factory=list)  # of the lines, once they are written
    false_clock: bool = False  # its times are wrong, and that is said


def recording(name, rng, T=200):
    """An animal that walks, turns and wags."""
    turn, walk = rng.normal(0, 0.1, T).cumsum(), rng.normal(0, 3, (T, 1, 2)).cumsum(0)
    body = (
        BODY + rng.normal(0, 1, (T, *BODY.shape)) + np.sin(np.arange(T) / 5)[:, None, None] * [[[0, 0]] * 4 + [[0, 9]]]
    )
    cos, sin = np.cos(turn), np.sin(turn)
    turned = np.einsum("tij,tpj->tpi", np.stack([np.stack([cos, -sin], -1), np.stack([sin, cos], -1)], -2), body)
    return Recording(name, np.round(turned + walk + 300, 3), time=np.arange(T) / RATE)


# --- mess: changes the recordings or the folder; gives the words that must be said, "" for none; REFUSED ----------


def another_rate(found, folder, rng):
    found[1].time = found[1].time / rng.choice([0.5, 2, 4])
    return REFUSED + "a model has one clock"


def nearly_the_rate(found, folder, rng):
    found[1].time = found[1].time * 1.01
    return "taken for one"


def without_time(found, folder, rng):
    found[2].time = None
    return "without a frame rate"


def another_unit(found, folder, rng):
    found[rng.integers(3)].xy *= rng.choice([0.1, 0.4, 2.5])
    return "another unit"


def another_order(found, folder, rng):
    order = rng.permutation(len(POINTS))
    found[1].points = tuple(found[1].points[i] for i in order)
    found[1].xy = found[1].xy[:, order]
    return ""


def a_point_less(found, folder, rng):
    found[1].points, found[1].xy = found[1].points[:-1], found[1].xy[:, :-1]
    return REFUSED + "different points or columns"


def another_spelling(found, folder, rng):
    found[2].points = tuple(re.sub(r"_(\w)", lambda m: m[1].upper(), p).capitalize() for p in found[2].points)
    return ""


def gaps(found, folder, rng):
    found[0].missing = rng.random(found[0].xy.shape[:2]) < 0.1
    found[0].missing[40:50] = True
    return ""


def swaps(found, folder, rng):
    first = int(rng.integers(20, 120))
    found[0].xy[first : first + 40, [1, 2]] = found[0].xy[first : first + 40, [2, 1]]
    return "are swapped"


def more_columns(found, folder, rng):
    for one in found:
        one.before |= {"stim": [str(t % 2) for t in range(len(one.xy))], "strain": ["wt"] * len(one.xy)}
    return "stim"


def files_of_the_system(found, folder, rng):
    for name in ("Thumbs.db", ".DS_Store", "desktop.ini", "._m0.csv", "~$m0.xlsx"):
        (folder / name).write_bytes(rng.bytes(50))
    return ""


def one_frame(found, folder, rng):
    one = found[2]
    one.xy, one.time = one.xy[:1], None if one.time is None else one.time[:1]
    one.before = {name: cells[:1] for name, cells in one.before.items()}
    return "one frame"


def times_repeat(found, folder, rng):
    if found[0].time is not None:
        found[0].time[50:60] = found[0].time[50]
    return "its times repeat"


def times_go_back(found, folder, rng):
    if found[0].time is not None:
        found[0].time[70:] -= found[0].time[70]
    return "go back"


def times_have_a_gap(found, folder, rng):
    if found[0].time is not None:
        found[0].time[70:] += 5
    return "times are uneven"


def milliseconds(found, folder, rng):
    for one in found:
        if one.time is not None:
            one.time, one.time_name = one.time * 1000, "time (ms)"
    return ""


def frames_jump(found, folder, rng):
    T = len(found[0].xy)
    found[0].before["frame"] = [str(t + 30 * (t > T // 2)) for t in range(T)]
    return "jump"


def low_confidence(found, folder, rng):
    for one in found:
        one.likelihood = rng.uniform(0.0, 1.0, one.xy.shape[:2]).round(3)
    return "confidence below 0.3"


def decimal_commas(found, folder, rng):
    for one in found:
        one.divider = ";"
    return "decimal commas"


def words_for_missing(found, folder, rng):
    found[1].missing = rng.random(found[1].xy.shape[:2]) < 0.05
    found[1].gone = str(rng.choice(["NA", "-", "--", ".", "#N/A", "null", "NaN", "n/a", "None"]))
    return ""


def numbers_for_missing(found, folder, rng):
    found[1].xy[rng.random(found[1].xy.shape[:2]) < 0.05] = rng.choice([0, -1, -9999, 999])
    return "if that means missing"


def half_a_point_missing(found, folder, rng):
    found[1].missing = np.zeros(found[1].xy.shape[:2], bool)
    found[1].missing[::9, 1] = True
    where = 1 + (found[1].time is not None) + len(found[1].before) + 1  # the x of the second point stays
    found[1].changes.append(lambda lines: [_with(line, where, "250", t % 9 == 1) for t, line in enumerate(lines)])
    return "of which one coordinate is missing"


def _with(line, place, cell, here):
    cells = line.split(",")
    return ",".join([*cells[:place], cell, *cells[place + 1 :]]) if here else line


def y_counts_up(found, folder, rng):
    found[int(rng.integers(3))].xy[..., 1] *= -1
    return "mirror image"


def identities_change(found, folder, rng):
    found[1].xy += 150
    t = int(rng.integers(20, 180))
    found[0].xy[t:], found[1].xy[t:] = found[1].xy[t:].copy(), found[0].xy[t:].copy()
    return "change places"


def confidence_of_one(found, folder, rng):
    found[1].likelihood = rng.uniform(0.0, 1.0, found[1].xy.shape[:2]).round(3)
    return "confidence below 0.3"


def byte_order_mark(found, folder, rng):
    found[1].changes.append(lambda lines: ["\ufeff" + lines[0], *lines[1:]])
    return ""


def mixed_line_ends(found, folder, rng):
    found[1].changes.append(lambda lines: [line + "\r" * (i % 2) for i, line in enumerate(lines)])
    return ""


def comments_above(found, folder, rng):
    found[1].changes.append(lambda lines: ["# recorded on a Monday", "# by night", *lines])
    return "lines of comments"


def a_row_of_units(found, folder, rng):
    found[1].changes.append(lambda lines: [lines[0], ",".join(["px"] * len(lines[0].split(","))), *lines[1:]])
    return REFUSED + "words in row 2"


def a_repeated_column(found, folder, rng):
    found[1].changes.append(lambda lines: [f"{line},{line.split(',')[-1]}" for line in lines])
    return "repeated column"


def two_columns_of_one_name(found, folder, rng):
    found[1].changes.append(
        lambda lines: [f"{line},{line.split(',')[-1] if i == 0 else i}" for i, line in enumerate(lines)]
    )
    return REFUSED + "two columns"


def a_header_alone(found, folder, rng):
    found[1].changes.append(lambda lines: lines[:1])
    return REFUSED + "a header but no frames"


def no_header_in_one(found, folder, rng):
    found[1].changes.append(lambda lines: lines[1:])
    return REFUSED + "different points or columns"


def a_row_cut_short(found, folder, rng):
    found[1].changes.append(lambda lines: [*lines[:-1], lines[-1][: len(lines[-1]) // 2]])
    return REFUSED + "is no table"


def appended_twice(found, folder, rng):
    found[1].changes.append(lambda lines: lines + lines)
    return REFUSED + "not a number"


def utf_16(found, folder, rng):
    (folder / "m9.csv").write_bytes("a,b\n1,2\n".encode("utf-16"))
    return REFUSED + "UTF-16"


def unit_in_one(found, folder, rng):
    found[1].changes.append(lambda lines: [re.sub(r"_([xy])\b", r"_\1 (mm)", lines[0]), *lines[1:]])
    return "are taken to be in mm"


def two_units(found, folder, rng):
    for one, unit in zip(found[1:], ("mm", "px"), strict=False):
        one.changes.append(lambda lines, unit=unit: [re.sub(r"_([xy])\b", rf"_\1 ({unit})", lines[0]), *lines[1:]])
    return REFUSED + "different units"


def an_unknown_clock(found, folder, rng):
    for one in found:
        one.before |= {"tick": [str(40 * t) for t in range(len(one.xy))]}
    return "tick"


def milliseconds_that_nobody_names(found, folder, rng):
    for one in found:
        one.time, one.false_clock = None if one.time is None else one.time * 1000, True
    return "are the times in ms"


def a_copy(found, folder, rng):
    found.append(dataclasses.replace(found[0], name="copy of m0"))
    return "are the same"


def a_still_animal(found, folder, rng):
    found[2].xy[:] = found[2].xy[:1]
    return "does not move"


def two_animals(found, folder, rng):
    T = len(found[0].xy)
    found[0].before["animal"] = ["a" if t < T // 2 else "b" for t in range(T)]
    return "2 recordings, by animal"


def a_workbook(found, folder, rng):
    with zipfile.ZipFile(folder / "notes.xlsx", "w") as file:
        file.writestr("xl/workbook.xml", "<workbook/>")
    return REFUSED + "several kinds"


def a_pointer(found, folder, rng):
    (folder / "m9.csv").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    return REFUSED + "git lfs pull"


def boris(found, folder, rng):
    (folder / "m9.csv").write_text("Observation id,Behavior,Behavior type,Time\nm,groom,START,1\nm,groom,STOP,2\n")
    return REFUSED + "BORIS"


def another_format(found, folder, rng):
    np.save(folder / "m9.npy", found[0].xy)
    return REFUSED + "several kinds"


def notes(found, folder, rng):
    (folder / "notes.txt").write_text("m0 was tired\n")
    return "notes.txt"


def a_folder_below(found, folder, rng):
    (folder / "old").mkdir()
    (folder / "old" / "m0.csv").write_text("a,b\n1,2\n3,4\n")
    return "folders below"


MESS: tuple[Callable, ...] = (
    another_rate, nearly_the_rate, without_time, another_unit, another_order, a_point_less, another_spelling, gaps,
    swaps, more_columns, files_of_the_system, one_frame, times_repeat, times_go_back, times_have_a_gap, milliseconds,
    frames_jump, low_confidence, decimal_commas, a_copy, a_still_animal, two_animals, a_workbook, a_pointer, boris,
    another_format, notes, a_folder_below, words_for_missing, numbers_for_missing, half_a_point_missing, y_counts_up,
    identities_change, confidence_of_one, byte_order_mark, mixed_line_ends, comments_above, a_row_of_units,
    a_repeated_column, two_columns_of_one_name, a_header_alone, no_header_in_one, a_row_cut_short, appended_twice,
    utf_16, unit_in_one, two_units, an_unknown_clock, milliseconds_that_nobody_names,
)  # fmt: skip
CLOCK = {another_rate, nearly_the_rate, without_time, times_repeat, times_go_back, times_have_a_gap, milliseconds,
         milliseconds_that_nobody_names}  # fmt: skip
FRAMES = {swaps, gaps, one_frame, a_still_animal, two_animals, frames_jump, low_confidence, a_copy, another_unit,
          words_for_missing, numbers_for_missing, half_a_point_missing, y_counts_up, identities_change,
          confidence_of_one}  # fmt: skip
TEXT = {decimal_commas, half_a_point_missing, byte_order_mark, mixed_line_ends, comments_above, a_row_of_units,
        a_repeated_column, two_columns_of_one_name, a_header_alone, no_header_in_one, a_row_cut_short, appended_twice,
        unit_in_one, two_units}  # fmt: skip
NAMES = {another_order, a_point_less, another_spelling}
ALONE = [
    CLOCK,
    FRAMES,
    TEXT,
    NAMES,
    {more_columns, half_a_point_missing},
    NAMES | {identities_change},
]  # at most one of each in a folder


def chosen(rng):
    """One to three kinds of mess that leave each other whole."""
    found = []
    for mess in (MESS[i] for i in rng.permutation(len(MESS))):
        if not any(mess in group and any(other in group for other in found) for group in ALONE):
            found.append(mess)
        if len(found) == 3:
            break
    return found[: int(rng.integers(1, 4))]


def write(one, folder):
    """A csv of a recording."""
    columns = {} if one.time is None else {one.time_name: [f"{t:.6f}" for t in one.time]}
    columns |= one.before
    for p, point in enumerate(one.points):
        for a, axis in enumerate("xy"):
            gone = np.zeros(len(one.xy), bool) if one.missing is None else one.missing[:, p]
            columns[f"{point}_{axis}"] = [
                one.gone if g else f"{v:.4f}" for v, g in zip(one.xy[:, p, a], gone, strict=True)
            ]
        if one.likelihood is not None:
            columns[f"{point}_likelihood"] = [f"{v:.3f}" for v in one.likelihood[:, p]]
    mark = one.divider
    lines = [mark.join(columns), *(mark.join(row) for row in zip(*columns.values(), strict=True))]
    for change in one.changes:
        lines = change(lines)
    text = "\n".join(lines) + "\n"
    with open(folder / f"{one.name}.csv", "w", encoding="utf-8", newline="") as file:
        file.write(text.replace(".", ",") if mark == ";" else text)


def expected(one):
    """(T, P, 2) by the names in POINTS, missing where it must be."""
    plain = [re.sub("_", "", p).lower() for p in one.points]
    order = [plain.index(p.replace("_", "")) for p in POINTS]
    xy = np.round(one.xy, 4).copy()
    if one.missing is not None:
        xy[one.missing] = np.nan
    if one.likelihood is not None:
        xy[one.likelihood < 0.3] = np.nan
    return xy[:, order]


def outcome(number, seed, mess=None):
    """(the mess, "right", "said", "refused" or what went wrong in silence); the mess is drawn unless it is given."""
    from svae import data

    rng = np.random.default_rng([seed, number])
    found = [recording(f"m{i}", rng) for i in range(3)]
    mess = chosen(rng) if mess is None else [mess]
    names = " + ".join(m.__name__ for m in mess)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wanted = [m(found, folder, rng) for m in mess]
        for one in found:
            write(one, folder)
        try:
            loaded = data.load(folder)
        except data.DataError as error:
            sentence = str(error)
            expected_words = any(w.removeprefix(REFUSED) in sentence for w in wanted if w.startswith(REFUSED))
            good = expected_words and "\n" not in sentence and sentence.endswith(".")
            return names, "refused" if good else f"refused: {sentence}"
        if any(w.startswith(REFUSED) for w in wanted):
            return names, "SILENT: it was loaded"
        said = " ".join([*loaded.notes, *data.doubts(loaded)])
        unsaid = [words for words in wanted if words and words not in said]
        if unsaid:
            return names, f"SILENT: nothing of {unsaid} in {said!r}"
        wrong = _wrong(found, loaded)
        return names, f"SILENT: {wrong}" if wrong else "said" if any(wanted) else "right"


def _wrong(found, loaded):
    """What was read otherwise than it was written."""
    truth = np.concatenate([expected(one) for one in sorted(found, key=lambda one: one.name)])
    read = np.concatenate([y[:] for y in loaded.sequences])
    first = [re.sub("_", "", p).lower() for p in loaded.sequences[0].points]
    if sorted(first) != sorted(p.replace("_", "") for p in POINTS):
        return f"points {first}"
    read = read[:, [first.index(p.replace("_", "")) for p in POINTS]]
    if read.shape != truth.shape or not np.allclose(read, truth, atol=1e-3, equal_nan=True):
        return "other numbers than were written"
    if any(one.false_clock for one in found):
        return ""
    if loaded.fps is not None and abs(loaded.fps / RATE - 1) > 0.02:
        return f"a rate of {loaded.fps}"
    return "" if loaded.fps is not None or all(one.time is None for one in found) else "no rate"


def run(folders, seed):
    """How many folders ended how, and every failure in words."""
    found = [(number, *outcome(number, seed)) for number in range(folders)]
    counts = collections.Counter(how if how in ("right", "said", "refused") else "failed" for _, _, how in found)
    return counts, [
        f"{number} ({mess}): {how}" for number, mess, how in found if how not in ("right", "said", "refused")
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folders", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    counts, failures = run(options.folders, options.seed)
    print(", ".join(f"{name} {number}" for name, number in sorted(counts.items())))
    print(*failures, sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
