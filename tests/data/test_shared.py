"""Real recordings that nobody here made, where they are at hand: each loads with one call."""

from pathlib import Path

import numpy as np
import pytest

import svae
from svae import data
from svae.config import Config

SHARED = Path(__file__).parents[3] / "shared" / "data"
pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared recordings are not here")

LOADS = {  # path -> number of recordings, longest, event, fps
    "formats/dlc_raw_clip1.h5": (1, 7200, (6, 2), None),
    "formats/dlc_golden_mouse_superanimal.h5": (1, 4860, (27, 2), None),
    "formats/maushaus_keypoints_3d_short.h5": (1, 1000, (30, 3), None),
    "formats/sleap_analysis_sample.h5": (2, 3000, (13, 2), None),
    "formats/sleap_centered_pair_predictions.slp": (4, 1100, (24, 2), None),
    "formats/sleap_centered_pair_predictions.h5": (4, 1100, (24, 2), None),
    "formats/sleap_centered_pair_small.mp4": (1, 1100, (384, 384), 15.0),
    "formats/vame_cropped_video.nwb": (1, 750, (6, 2), 1.0),
    "formats/vame_cropped_video.csv": (1, 750, (6, 2), None),
    "mouse_pose_jabs/sample_pose_est_v2.h5": (1, 1800, (12, 2), 30.0),
    "mouse_pose_jabs/sample_pose_est_v5.h5": (3, 1800, (12, 2), 30.0),
    "mouse_pose_jabs/sample_pose_est_v6.h5": (4, 3600, (12, 2), 30.0),
    "mouse_pose_jabs/jabs_tracks.npz": (7, 3600, (12, 2), 30.0),
    "mouse_pose_jabs/silhouettes_v6_32x32.npz": (4, 3600, (32, 32), 30.0),
    "moseq_depth/results_00.h5": (1, 900, (80, 80), 30.0),
    "birdsong/gy6or6_day1_logmel48.npz": (12, 3222, (48,), 250.0),
    "mocap6/dataset.npz": (6, 446, (12,), None),
    "mocap6/sensor_data_per_tstep.csv": (6, 446, (12,), None),
    "mocap_cmu_multi/mocap_exercise_30hz.npz": (3, 1163, (62,), 30.0),
    "mocap_cmu_multi/86_01.bvh": (1, 4579, (96,), pytest.approx(120, abs=0.01)),
    "fly_video/fly1_32x32.npz": (1, 20000, (32, 32), 100.0),
    "mouse_oft_labelled/8_01_A_dlc.csv": (1, 1998, (18, 2), None),
    "mouse_pose_bsoid": (2, 7200, (6, 2), None),
    "mouse_pose_oft17": (2, 9000, (17, 2), None),
    "mouse_openfield_video/mouse_movie.avi": (1, 1181, (151, 151), 30.0),
    "mocap35/mocap35.mat": (23, 300, (50,), None),
    "fsdd/fsdd_4speakers_logmel32.npz": (2000, 129, (32,), 100.0),
    "bees": (6, 1124, (3,), None),
    "timeseries/BasicMotions_TRAIN.ts": (40, 100, (6,), None),
    "timeseries/ETTh1.csv": (1, 17420, (7,), pytest.approx(1 / 3600)),
    "timeseries/exchange_rate.txt.gz": (1, 7588, (8,), None),
    "timeseries/S06R02E0.csv": (1, 7040, (9,), pytest.approx(64, abs=0.01)),
    "mnist_t10k/t10k-images-idx3-ubyte.gz": (1, 10000, (28, 28), None),
    "tabular/penguins.csv": (1, 344, (4,), None),
    "worm/worm_tseries.h5": (12, 200, (4,), 10.0),
}
CANNOT = {
    "birdsong/raw/gy6or6_baseline_230312_0808.138.cbin": "of no format that svae knows",
    "birdsong/raw/gy6or6_baseline_230312_0808.138.cbin.not.mat": "no array that looks like a recording",
    "mocap_cmu_multi/13_30.amc": "AMC motion capture",
    "fsdd/fsdd_wav_400.zip": "zip archive without numpy arrays",
    "mouse_oft_labelled/8_01_A_labels.csv": "table of bouts",
    "formats": "several kinds",
}


@pytest.mark.parametrize("name", LOADS)
def test_real_files_load_with_one_call(name):
    number, longest, event, fps = LOADS[name]
    found = svae.load(SHARED / name)
    assert len(found.sequences) == number and max(map(len, found.sequences)) == longest
    assert found.sequences[0].shape[1:] == event and found.fps == fps
    window = found.sequences[0][:20]
    assert window.shape == (min(20, len(found.sequences[0])), *event)


@pytest.mark.parametrize("name", CANNOT)
def test_real_files_that_cannot_be_modelled_get_one_sentence(name):
    with pytest.raises(svae.DataError, match=CANNOT[name]) as caught:
        svae.load(SHARED / name)
    assert "\n" not in str(caught.value)


def test_the_same_recording_in_two_formats_is_the_same():
    a, b = (svae.load(SHARED / f"formats/vame_cropped_video.{kind}").sequences[0] for kind in ("nwb", "csv"))
    order = [b.points.index(name) for name in a.points]
    np.testing.assert_allclose(a[:], b[:][:, order])
    h5, slp = (svae.load(SHARED / f"formats/sleap_centered_pair_predictions.{kind}") for kind in ("h5", "slp"))
    order = [slp.sequences[0].points.index(name) for name in h5.sequences[0].points]
    assert sorted(order) == list(range(24))
    h5, npz = (svae.load(SHARED / f"mouse_pose_jabs/{f}") for f in ("sample_pose_est_v6.h5", "jabs_tracks.npz"))
    mine, theirs = h5.sequences[0][:], [npz.sequences[i][:] for i in range(4)]
    assert min(np.nanmedian(np.abs(mine - other)) for other in theirs) == 0


def test_a_gap_in_depth_video_is_kept_in_its_times():
    found = svae.load(SHARED / "moseq_depth/results_00.h5")
    steps = np.diff(data.seconds(found, 0))
    assert 0.19 < steps.max() < 0.21 and abs(np.median(steps) - 1 / 30) < 1e-3
    assert data.find_preprocess(found, Config()).kind == "depth"


@pytest.mark.parametrize("name", ["formats/dlc_raw_clip1.h5", "mouse_oft_labelled/8_01_A_dlc.csv", "mouse_pose_oft17"])
def test_real_keypoints_shrink_to_their_posture(name):
    found = svae.load(SHARED / name)
    p = data.find_preprocess(found, Config())
    before = np.concatenate([y[:] for y in found.sequences])[:, list(p.keep)]
    after = np.concatenate([y[:] for y in data.preprocessed(found, p).sequences])
    assert np.nanstd(after, 0).mean() < 0.15 * np.nanstd(before, 0).mean()
