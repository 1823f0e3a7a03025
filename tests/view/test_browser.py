"""The viewer as a person meets it, in a real browser."""

import time

import numpy as np
import pytest

from svae.runs import Run
from svae.runs._quality import Quality, write_quality
from tests.view.browser import WHY_NOT, Browser
from tests.view.conftest import K, Served, T, made

pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))


@pytest.fixture(scope="module")
def tab(tmp_path_factory, served):
    with Browser(tmp_path_factory.mktemp("chromium")) as found:
        found.open(served.url)
        yield found


@pytest.fixture(autouse=True)
def nothing_went_wrong(tab):
    yield
    assert tab.console == []


def frame(tab):
    return int(tab.value("document.body.dataset.frame"))


def place_of(tab, t):
    """Where frame t is in the ethogram, on the screen."""
    box = tab.value("(b => [b.x, b.y, b.width])(document.querySelector('#tracks').getBoundingClientRect())")
    d = {k: float(v) for k, v in tab.value("({...document.querySelector('#tracks').dataset})").items() if k != "ready"}
    share = (t - d["first"]) / (d["last"] - d["first"])
    return box[0] + d["gutter"] + share * (box[2] - d["gutter"] - d["right"]), box[1] + d["ethogram"]


def seek(tab, t):
    """Click in the ruler, which is above the ethogram."""
    x, y = place_of(tab, t)
    tab.until("document.querySelector('#tracks').dataset.ready === 'yes'")
    tab.click_at(x, y - 40)
    tab.until(f"document.body.dataset.frame === '{int(t)}'")


def test_it_loads_and_shows_the_recording(tab):
    assert tab.value("document.title").startswith("run") and tab.value("document.body.dataset.source") == "there"
    tab.until("document.querySelector('#real').dataset.frame === '0'")
    tab.until("document.querySelector('#decoded').dataset.frame === '0'")
    assert tab.value("document.querySelectorAll('#states .state').length") == K
    assert tab.value("performance.getEntriesByType('resource').every(r => r.name.startsWith(location.href))")


def test_keys_and_clicks_move_one_cursor(tab):
    seek(tab, 40.5)
    before = tab.pixels("#real")
    tab.press("ArrowRight")
    tab.until("document.querySelector('#real').dataset.frame === '41'")
    assert frame(tab) == 41 and tab.pixels("#real") != before
    tab.press("ArrowRight", shift=True)
    tab.until("document.body.dataset.frame === '48'")
    tab.press("n")  # the next bout of this state begins after all others have had theirs
    tab.until(f"document.body.dataset.frame === '{48 + 8 * K}'")
    tab.press(" ")
    tab.until("document.body.dataset.playing === 'yes' && Number(document.body.dataset.frame) > 82")
    tab.press(" ")
    tab.until("document.body.dataset.playing === 'no'")


def test_zoom_keeps_the_cursor_in_place(tab):
    seek(tab, 60.5)
    x, _ = place_of(tab, frame(tab))
    tab.press("+")
    tab.until(f"Number(document.querySelector('#tracks').dataset.last) < {T}")
    assert place_of(tab, frame(tab))[0] == pytest.approx(x, abs=6)
    tab.press("0")
    tab.until(f"Number(document.querySelector('#tracks').dataset.last) === {T}")


def test_a_bout_that_is_clicked_plays_to_its_end(tab):
    tab.click_at(*place_of(tab, 8 * 9 + 5))
    tab.until("document.body.dataset.playing === 'yes'")
    tab.until("document.body.dataset.playing === 'no'")
    assert frame(tab) == 8 * 10 - 1


def test_a_name_goes_into_the_run_and_is_there_after_a_reload(tab, served, images):
    tab.click(".state[data-state='2'] .rename")
    tab.until("document.querySelector('.state[data-state=\"2\"] input.edit') === document.activeElement")
    tab.write("<b>rear</b> & up")
    tab.press("Enter")
    tab.until("document.querySelector('.state[data-state=\"2\"] .name')?.textContent === '<b>rear</b> & up'")
    assert Run(images.path).names == {2: "<b>rear</b> & up"}
    tab.open(served.url)
    assert tab.value("document.querySelector('.state[data-state=\"2\"] .name').textContent") == "<b>rear</b> & up"


def test_states_merge_and_part_again(tab, images):
    for k in (0, 1):
        tab.click(f".state[data-state='{k}'] input[type=checkbox]")
    tab.click("#merge")
    tab.until(f"document.querySelectorAll('#states .state').length === {K - 1}")
    assert Run(images.path).labels().merged == {1: 0}
    seek(tab, 2.5)
    tab.press("ArrowRight", shift=True)
    tab.until("document.body.dataset.frame === '16'")  # states 0 and 1 are one bout of sixteen frames now
    tab.click(".member button")
    tab.until(f"document.querySelectorAll('#states .state').length === {K}")
    assert Run(images.path).labels().merged == {} and Run(images.path).names == {2: "<b>rear</b> & up"}


def test_dragging_a_latent_point_redraws_the_frame(tab):
    seek(tab, 30.5)
    x, y = tab.place("#plane")
    tab.until("document.querySelector('#imagined').dataset.drawn > 0")
    pictures, drawn = [], "Number(document.querySelector('#imagined').dataset.drawn)"
    for there in ((x - 60, y - 40), (x + 60, y + 40)):
        before = tab.value(drawn)
        tab.drag((x, y), there)
        tab.until(f"{drawn} > {before}")
        time.sleep(0.3)  # the last of several under way
        pictures.append(tab.pixels("#imagined"))
    assert pictures[0] != pictures[1]


def test_a_forecast_is_drawn_and_played(tab):
    seek(tab, 100.5)
    assert not oranges(tab)
    tab.click("#predict")
    tab.until("document.body.dataset.forecast === '101'")
    tab.until("document.body.dataset.playing === 'no' && Number(document.body.dataset.frame) === 120")
    assert oranges(tab) and tab.value("document.querySelector('#card-forecast .note').hidden")


def oranges(tab):
    """Whether the tracks have pixels in the colour of a forecast's mean."""
    canvas = "const t = document.querySelector('#tracks'), d = t.getContext('2d')"
    data = f"{canvas}.getImageData(0, 0, t.width, t.height).data"
    some = "for (let i = 0; i < d.length; i += 4) if (d[i] === 194 && d[i + 1] === 80 && d[i + 2] === 10) return true"
    return tab.value(f"(() => {{ {data}; {some}; return false }})()")


# --- themes, widths, and what the page says while it waits ----------------------------------------------------------


@pytest.mark.parametrize("width", [1440, 800, 400])
def test_nothing_sticks_out_at_any_width(tab, served, width):
    tab.resize(width, 900)
    try:
        tab.open(served.url)
        assert tab.value("document.documentElement.scrollWidth") <= width
        for name in ("#card-real", "#card-forecast", "#card-playground", "#tracks", "#states"):
            box = tab.value(
                f"(b => [b.left, b.right, b.height])(document.querySelector('{name}').getBoundingClientRect())"
            )
            assert box[0] >= 0 and box[1] <= width and box[2] > 60, name
    finally:
        tab.resize(1280, 800)
        tab.open(served.url)


def test_it_is_dark_where_the_system_is(tab, served):
    brightness = (
        "getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).slice(0, 3).reduce((a, b) => a + +b, 0)"
    )
    line = "getComputedStyle(document.documentElement).getPropertyValue('--canvas-ink').trim()"
    light = tab.value(brightness), tab.value(line), tab.pixels("#tracks")
    tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    try:
        tab.until(f"{brightness} < 120")
        assert light[0] > 600 and tab.value(line) != light[1]
        tab.until(f"document.querySelector('#tracks').toDataURL() !== {light[2]!r}")
    finally:
        tab.call("Emulation.setEmulatedMedia", features=[])


def test_it_says_what_it_waits_for(tab, served):
    """On a slow line; the words go when the answer is there."""
    slow = {"offline": False, "latency": 700, "downloadThroughput": -1, "uploadThroughput": -1}
    tab.call("Network.enable")
    tab.call("Network.emulateNetworkConditions", **slow)
    try:
        tab.call("Page.navigate", url=served.url)
        words = "document.querySelector('#busy')?.textContent"
        tab.until(f"document.body?.dataset.asking === 'yes' && /^(Reading|Finding|Decoding).* …$/.test({words})")
        tab.until("document.body.dataset.source === 'there'")
    finally:
        tab.call("Network.emulateNetworkConditions", **(slow | {"latency": 0}))
    tab.until("document.body.dataset.asking === 'no' && document.querySelector('#busy').textContent === ''")


def test_a_body_has_names_shades_and_states_with_their_faults(tab, tmp_path):
    run = made(tmp_path / "tracked", "bodies")
    K_missing = np.array([0.0, 0.0, 0.0, 0.7])
    trusted = 80 * (0.9 - 0.5 * K_missing)
    write_quality(run.path, {"": Quality(np.full(K, 80.0), 80 * K_missing, 40 * K_missing, trusted, np.full(K, 80.0))})
    with Served(run) as server:
        tab.open(server.url)
        tab.until("document.querySelector('#real').dataset.frame === '0'")
        x, y, w, h = tab.value(
            "(b => [b.x, b.y, b.width, b.height])(document.querySelector('#real').getBoundingClientRect())"
        )
        steps = [(x + w * i / 40, y + h * j / 40) for i in range(41) for j in range(41)]
        names = set()
        for place in steps:
            tab.mouse("mouseMoved", *place)
            names.add(
                tab.value("document.querySelector('#point').hidden ? '' : document.querySelector('#point').textContent")
            )
            if len(names) > 2:
                break
        assert names & {"0", "1", "2", "3", "4"}
        assert "70 % incomplete" in tab.value("document.querySelector('.state[data-state=\"3\"] .seen').textContent")
        assert "0 % incomplete · confidence 0.90" in tab.value(
            "document.querySelector('.state[data-state=\"1\"] .seen').textContent"
        )
        assert "may be a fault of the tracker" in tab.value(
            "document.querySelector('.state[data-state=\"3\"] .alert p').textContent"
        )
        assert tab.value("document.querySelectorAll('.state .alert').length") == 1
        tab.call("Page.navigate", url="about:blank")


def test_without_its_recording_a_run_is_shown_without_the_picture(tab, tmp_path):
    run = made(tmp_path / "gone", "bodies")
    (tmp_path / "gone" / "walks.npz").unlink()
    with Served(run) as server:
        tab.open(server.url)
        assert tab.value("document.body.dataset.source") == "absent"
        assert "walks.npz" in tab.value("document.querySelector('#card-real .note').textContent")
        tab.until("document.querySelector('#decoded').dataset.frame === '0'")
        assert tab.value("document.querySelector('#predict').disabled")
        tab.click_at(*place_of(tab, 8 * 9 + 5))
        tab.until("Number(document.body.dataset.frame) >= 72")
    assert server.process.returncode == 0 and server.errors == "", "Ctrl-C ends it without a word"
