"""`report`: the figures of a run, and the page that holds them."""

import io
import warnings as python_warnings
from pathlib import Path
from typing import NamedTuple

from svae.experiments import _figures
from svae.fitting.scree import in_words
from svae.report import _page, _words
from svae.report._bodies import bodies
from svae.report._drawings import Drawing, drawings
from svae.report._film import painter
from svae.report._glossary import OF_SECTIONS, TERMS
from svae.report._look import find_look
from svae.report._material import Material, gather
from svae.report._page_movies import page_movies
from svae.report._palette import css, label
from svae.report._trust import not_computed
from svae.report._video import filmed
from svae.runs import Run
from svae.runs._quality import suspects, warning

Movies = tuple[dict[tuple[str, int], bytes], str]  # of each block and state, and why there are not all of them
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
OF_BLOCKS = ("states", "transitions", "similarity")  # each discrete block has its own


class Report(NamedTuple):
    """What `report` wrote."""

    page: Path
    figures: list[str]
    warnings: list[str]


def report(run: Run, video: str | None = None) -> Report:
    """Write RUN/report/report.html, each figure as PNG and PDF in RUN/report/figures, and movies in RUN/report/movies.

    `video` is the path of the real video of a run of keypoints.
    """
    matplotlib = _figures.require_matplotlib()
    material, out = gather(run), run.path / "report"
    body, film = bodies(material), filmed(material, video)
    with _figures.style(), matplotlib.rc_context({"text.parse_math": False}), python_warnings.catch_warnings():
        python_warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a name in letters the font has not
        drawn = list(drawings(material, body, film))
        for drawing in drawn:
            _figures.save_figure(drawing.figure, out / "figures", drawing.name)
        look = None if material.seen is None else find_look(material)
        paint = None if body is None else painter(body, film)
        moving = page_movies(material, look, paint, out / "movies")
        text = _small_enough(material, drawn, moving)
    _figures.write_atomically(out / "report.html", lambda file: file.write(text.encode()))
    return Report(out / "report.html", [d.name for d in drawn], _words.warnings(material))


def _small_enough(material: Material, drawn: list[Drawing], moving: Movies) -> str:
    """The page with the sharpest images that keep it below LARGEST."""
    for dpi in SHARPNESS:
        text = page_text(material, drawn, [_webp(d.figure, dpi) for d in drawn], moving)
        if len(text) <= LARGEST:
            break
    return text


def _webp(figure, dpi: int) -> bytes:
    """A tenth of the bytes of PNG where there are photographs, and every browser knows it."""
    stream = io.BytesIO()
    figure.savefig(stream, format="webp", dpi=dpi, pil_kwargs={"quality": 88})
    return stream.getvalue()


def page_text(material: Material, drawn: list[Drawing], pictures: list[bytes], moving: Movies = ({}, "")) -> str:
    """The whole page, from its figures with their images, and its movies."""
    parts = [_page.Part("summary", "Summary", _words_of("summary") + _card(material))]
    sections = _sections(material)
    texts = dict.fromkeys(sections, "")
    for drawing, webp in zip(drawn, pictures, strict=True):
        part = drawing.block or material
        texts[part.called(drawing.section)] += _shown(part, drawing, webp, moving[0])
    texts["latents"] += _page.paragraphs(_without_scree(material), "note")
    texts["trust"] += _page.paragraphs(not_computed(material), "note")
    texts["states"] += (
        _page.paragraphs([*_missing(material), *filter(None, [moving[1]])], "note") if texts["states"] else ""
    )
    parts += [_page.Part(s, sections[s].title, sections[s].terms + body) for s, body in texts.items() if body]
    parts.append(_page.Part("glossary", "Glossary", _page.glossary(TERMS)))
    provenance = material.run.provenance()
    subtitle = f"{' '.join(provenance.get('command') or ['fitted from Python'])}"
    versions = provenance.get("versions") or {}
    footer = (
        f"Started {provenance.get('created', '')}, seed {provenance.get('seed')}, svae {versions.get('svae')}, "
        f"jax {versions.get('jax')}. Every figure is in the folder figures beside this page, as PNG and PDF."
    )
    return _page.page(material.run.path.resolve().name, subtitle, parts, footer)


class Section(NamedTuple):
    """What a section is called, and links to the words that it uses."""

    title: str
    terms: str


def _sections(material: Material) -> dict[str, Section]:
    """By anchor, in the order of the page: states, transitions and similarity once for each discrete block."""
    found = {}
    for section, title in TITLES.items():
        if section not in OF_BLOCKS:
            found[section] = Section(title, _words_of(section))
        elif section == OF_BLOCKS[0]:
            for part in material.each:
                found |= {part.called(s): Section(TITLES[s] + part.of, _words_of(s)) for s in OF_BLOCKS}
    return found


def _words_of(section: str) -> str:
    return _page.terms(OF_SECTIONS[section])


def _shown(material: Material, drawing: Drawing, webp: bytes, moving: dict[tuple[str, int], bytes]) -> str:
    width = round(INCH * drawing.figure.get_figwidth())
    if drawing.folded:
        return _page.folded(drawing.folded, webp, width)
    if drawing.state is None:
        return _page.figure(webp, drawing.words, width, drawing.marks)
    colour, k = css(material.colours[drawing.state]), drawing.state
    name, key = f"{label(k, material.names)}{material.of}", (material.block or "", k)
    seen = _page.image(webp, name, width, drawing.marks)
    seen += _page.movie(moving[key], name) if key in moving else ""
    return _page.state(colour, name, drawing.words, _fault(material, k), seen)


def _fault(material: Material, k: int) -> str:
    """A warning where a state may be a fault of the tracker."""
    faulty = material.quality is not None and k in suspects(material.quality)
    return warning(material.quality, k, label(k, material.names)) if faulty else ""


def _without_scree(material: Material) -> list[str]:
    """Why the latents have no picture of what principal components hold."""
    found = material.run.scree()
    return [in_words(found, material.config.latent_dim)] if found.why else []


def _missing(material: Material) -> list[str]:
    """Why the states show no recordings."""
    if material.seen is not None:
        return []
    return [f"Example frames and forecasts are left out: {material.why_no_data}."]


def _card(material: Material) -> str:
    found = _words.warnings(material)
    fine = [] if found else ["None of the checks of this report gives a warning."]
    return (
        f'<div class="card">{_page.paragraphs(_words.summary(material))}</div>'
        f"{_page.numbers(_large(material))}{_page.paragraphs(found, 'warning')}{_page.paragraphs(fine, 'fine')}"
    )


def _large(material: Material) -> dict[str, str]:
    """The numbers that people ask for first."""
    held, agree = material.run.held_out(), (material.run.restarts() or {}).get("mean_ari")
    found = {"recordings": str(len(material.posteriors))}
    found["frames"] = f"{sum(len(p.state) for p in material.posteriors.values()):,}"
    for part in material.each:
        if part.pgm.discrete:
            found[f"states in use{part.of}"] = f"{len(part.states)} of {part.most}"
        if part.pgm.chained:
            found[f"median bout{part.of}"] = f"{part.duration(_words.median_bout(part)):.2g} {part.unit}"
            found[f"bouts{part.of}"] = f"{len(part.stretches):,}"
    if agree is not None:
        found["agreement of restarts"] = f"{agree:.2f}"
    if held is not None:
        found["held-out bound, nats per frame"] = _words.number(held)
    return found
