"""`report`: the figures of a run, and the page that holds them."""

import io
import itertools
import warnings as python_warnings
from pathlib import Path
from typing import NamedTuple

from svae.experiments import _figures
from svae.report import _page, _words
from svae.report._drawings import Drawing, drawings
from svae.report._material import MARKOV, SWITCHING, Material, gather
from svae.report._palette import css, label, palette
from svae.runs import Run

LARGEST = 4_800_000  # bytes of the page
SHARPNESS = (160, 130, 100, 75, 50)  # dots per inch of its images: the first with which it is small enough
INCH = 96  # pixels on the page
TITLES = {
    "training": "Training",
    "trust": "Trust",
    "ethogram": "Ethogram",
    "states": "States",
    "transitions": "Transitions",
    "similarity": "Similarity",
    "latents": "Latents",
    "forecast": "Forecast",
    "model": "Model",
}


class Report(NamedTuple):
    """What `report` wrote."""

    page: Path
    figures: list[str]
    warnings: list[str]


def report(run: Run) -> Report:
    """Write RUN/report/report.html, and each figure as PNG and PDF in RUN/report/figures."""
    matplotlib = _figures.require_matplotlib()
    material, out = gather(run), run.path / "report"
    with _figures.style(), matplotlib.rc_context({"text.parse_math": False}), python_warnings.catch_warnings():
        python_warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a name in letters the font has not
        drawn = list(drawings(material))
        for drawing in drawn:
            _figures.save_figure(drawing.figure, out / "figures", drawing.name)
        text = _small_enough(material, drawn)
    _figures.write_atomically(out / "report.html", lambda file: file.write(text.encode()))
    return Report(out / "report.html", [d.name for d in drawn], _words.warnings(material))


def _small_enough(material: Material, drawn: list[Drawing]) -> str:
    """The page with the sharpest images that keep it below LARGEST."""
    for dpi in SHARPNESS:
        text = page_text(material, drawn, [_webp(d.figure, dpi) for d in drawn])
        if len(text) <= LARGEST:
            break
    return text


def _webp(figure, dpi: int) -> bytes:
    """A tenth of the bytes of PNG where there are photographs, and every browser knows it."""
    stream = io.BytesIO()
    figure.savefig(stream, format="webp", dpi=dpi, pil_kwargs={"quality": 88})
    return stream.getvalue()


def page_text(material: Material, drawn: list[Drawing], pictures: list[bytes]) -> str:
    """The whole page, from its figures and their images."""
    parts = [_page.Part("summary", "Summary", _card(material))]
    pairs = itertools.groupby(zip(drawn, pictures, strict=True), key=lambda pair: pair[0].section)
    for section, group in pairs:
        body = "".join(_shown(material, drawing, webp) for drawing, webp in group)
        parts.append(_page.Part(section, TITLES[section], body + _missing(material, section)))
    provenance = material.run.provenance()
    subtitle = f"{' '.join(provenance.get('command') or ['fitted from Python'])}"
    versions = provenance.get("versions") or {}
    footer = (
        f"Started {provenance.get('created', '')}, seed {provenance.get('seed')}, svae {versions.get('svae')}, "
        f"jax {versions.get('jax')}. Every figure is in the folder figures beside this page, as PNG and PDF."
    )
    return _page.page(material.run.path.resolve().name, subtitle, parts, footer)


def _shown(material: Material, drawing: Drawing, webp: bytes) -> str:
    width = round(INCH * drawing.figure.get_figwidth())
    if drawing.state is None:
        return _page.figure(webp, drawing.words, width)
    colour = css(palette(len(material.usage))[drawing.state])
    return _page.state(colour, label(drawing.state, material.names), drawing.words, webp, width)


def _missing(material: Material, section: str) -> str:
    """Why a section shows no recordings."""
    if section != "states" or material.seen is not None:
        return ""
    return _page.paragraphs([f"Example frames and forecasts are left out: {material.why_no_data}."], "note")


def _card(material: Material) -> str:
    found = _words.warnings(material)
    fine = [] if found else ["No number looks wrong."]
    return (
        f'<div class="card">{_page.paragraphs(_words.summary(material))}</div>'
        f"{_page.numbers(_large(material))}{_page.paragraphs(found, 'warning')}{_page.paragraphs(fine, 'fine')}"
    )


def _large(material: Material) -> dict[str, str]:
    """The numbers that people ask for first."""
    held, agree = material.run.held_out(), (material.run.restarts() or {}).get("mean_ari")
    found = {"recordings": str(len(material.posteriors))}
    found["frames"] = f"{sum(len(p.state) for p in material.posteriors.values()):,}"
    if material.config.model in SWITCHING:
        found["states in use"] = f"{len(material.states)} of {material.most}"
    if material.config.model in MARKOV:
        found["median bout"] = f"{material.duration(_words.median_bout(material)):.2g} {material.unit}"
        found["bouts"] = f"{len(material.stretches):,}"
    if agree is not None:
        found["agreement of restarts"] = f"{agree:.2f}"
    if held is not None:
        found["held-out bound, nats per frame"] = _words.number(held)
    return found
