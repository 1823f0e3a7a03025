"""Log-mel spectra and syllables of songs in EvTAF recordings (.cbin beside .cbin.not.mat), for `sets.birdsong`.

python -m benchmarks.segmentation.songs FOLDER --out DATA/birdsong/BIRD_day1_logmel48.npz

A window is 16 ms, the hop 4 ms; 48 mel bands from 500 to 10,000 Hz. Recordings have two interleaved channels, the song
on the first; they are cut a quarter of a second before the first syllable and after the last one with --cut.
"""

import argparse
from pathlib import Path

import numpy as np
from scipy.io import loadmat

RATE, WINDOW, HOP = 32000, 512, 128  # samples
BANDS, LOWEST, HIGHEST = 48, 500.0, 10000.0
QUIET = 1.0  # added to the power, in units of the recorder, before the logarithm


def log_mel(sound: np.ndarray) -> np.ndarray:
    """Spectra (T, 48) of one recording."""
    starts = np.arange(0, len(sound) - WINDOW + 1, HOP)
    frames = sound[starts[:, None] + np.arange(WINDOW)] * np.hanning(WINDOW)
    return np.log(np.abs(np.fft.rfft(frames)) ** 2 @ _bands().T + QUIET)


def _bands():
    """Triangles on the mel scale (48, frequencies)."""
    mel = np.linspace(*(2595 * np.log10(1 + np.array([LOWEST, HIGHEST]) / 700)), BANDS + 2)
    edges = 700 * (10 ** (mel / 2595) - 1)
    hertz = np.fft.rfftfreq(WINDOW, 1 / RATE)
    rise = (hertz - edges[:-2, None]) / np.diff(edges)[:-1, None]
    fall = (edges[2:, None] - hertz) / np.diff(edges)[1:, None]
    return np.maximum(np.minimum(rise, fall), 0)


def syllables(marks: dict, frames: int) -> np.ndarray:
    """The letter of every frame (T,) by the middle of its window; "_" between syllables."""
    middle = (np.arange(frames) * HOP + WINDOW / 2) / RATE * 1000  # ms
    letters = np.full(frames, "_")
    for letter, onset, offset in zip(marks["labels"], marks["onsets"], marks["offsets"], strict=True):
        letters[(middle >= onset) & (middle < offset)] = letter
    return letters


def _song(letters):
    """First and last frame of the song, with a margin."""
    sung, margin = np.flatnonzero(letters != "_"), RATE // HOP // 4
    return max(sung[0] - margin, 0), sung[-1] + margin


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--songs", type=int, default=6)
    parser.add_argument("--cut", action="store_true", help="leave out what comes before and after the song")
    options = parser.parse_args()
    files = sorted(options.folder.glob("*.cbin"))[: options.songs]
    spectra = [log_mel(np.fromfile(file, ">i2")[::2].astype(float)) for file in files]
    marks = [loadmat(f"{file}.not.mat", squeeze_me=True) for file in files]
    letters = [syllables(one, len(y)) for one, y in zip(marks, spectra, strict=True)]
    if options.cut:
        spans = [_song(one) for one in letters]
        spectra, letters = ([y[a:b] for y, (a, b) in zip(each, spans, strict=True)] for each in (spectra, letters))
    names, label = np.unique(np.concatenate(letters), return_inverse=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        options.out,
        logmel=np.concatenate(spectra).astype(np.float16),
        label=label.astype(np.int8),
        label_names=names,
        length=np.array([len(y) for y in spectra], np.int32),
        song=np.array([file.name for file in files]),
        hop_s=HOP / RATE,
    )


if __name__ == "__main__":
    main()
