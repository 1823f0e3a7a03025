"""The viewer as a person meets it, in a real browser."""

import time

import pytest

from svae.runs import Run
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
    tab.click("#foretell")
    tab.until("document.body.dataset.forecast === '101'")
    tab.until("document.body.dataset.playing === 'no' && Number(document.body.dataset.frame) === 120")
    assert oranges(tab) and tab.value("document.querySelector('#card-forecast .note').hidden")


def oranges(tab):
    """Whether the tracks have pixels in the colour of a forecast's mean."""
    canvas = "const t = document.querySelector('#tracks'), d = t.getContext('2d')"
    data = f"{canvas}.getImageData(0, 0, t.width, t.height).data"
    some = "for (let i = 0; i < d.length; i += 4) if (d[i] === 194 && d[i + 1] === 80 && d[i + 2] === 10) return true"
    return tab.value(f"(() => {{ {data}; {some}; return false }})()")


def test_without_its_recording_a_run_is_shown_without_the_picture(tab, tmp_path):
    run = made(tmp_path / "gone", "bodies")
    (tmp_path / "gone" / "walks.npz").unlink()
    with Served(run) as server:
        tab.open(server.url)
        assert tab.value("document.body.dataset.source") == "absent"
        assert "walks.npz" in tab.value("document.querySelector('#card-real .note').textContent")
        tab.until("document.querySelector('#decoded').dataset.frame === '0'")
        assert tab.value("document.querySelector('#foretell').disabled")
        tab.click_at(*place_of(tab, 8 * 9 + 5))
        tab.until("Number(document.body.dataset.frame) >= 72")
    assert server.process.returncode == 0 and server.errors == "", "Ctrl-C ends it without a word"
