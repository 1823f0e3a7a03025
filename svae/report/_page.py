"""One page of HTML that needs nothing else: style and images are in it, and it asks no network."""

import base64
import html
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from svae.report._glossary import anchor

STYLE = """
:root { --ink: #1d2129; --soft: #5b6470; --line: #e3e6ea; --paper: #ffffff; --ground: #f5f6f8; --blue: #2166ac;
  --bar: rgba(255, 255, 255, .94); --code: #eef0f3; --alert: #fff6ef; --well: #f0faf6; color-scheme: light dark }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7ec; --soft: #a3acb8; --line: #343a43; --paper: #1c2026;
  --ground: #13161a; --blue: #7db5ea; --bar: rgba(19, 22, 26, .94); --code: #2a3038; --alert: #33241a; --well: #17291f }
  .picture, video { border-radius: 8px } .picture { border: 8px solid #fff; margin-bottom: 8px } }
* { box-sizing: border-box } html { scroll-behavior: smooth; scroll-padding-top: 3.2rem }
body { margin: 0; background: var(--ground); color: var(--ink); font: 16px/1.55 system-ui, "Segoe UI", Helvetica, Arial,
  sans-serif }
main { max-width: 1080px; margin: 0 auto; padding: 0 20px 60px }
nav { position: sticky; top: 0; z-index: 2; background: var(--bar); border-bottom: 1px solid var(--line);
  padding: 9px 20px; text-align: center; font-size: 14px }
nav a { color: var(--soft); text-decoration: none; margin: 0 9px; white-space: nowrap }
nav a:hover { color: var(--blue) }
h1 { font-size: 32px; margin: 34px 0 2px; letter-spacing: -.02em } .sub { color: var(--soft); margin: 0 0 18px }
section { background: var(--paper); border: 1px solid var(--line); border-radius: 10px; padding: 8px 24px 20px;
  margin: 18px 0 }
h2 { font-size: 21px; margin: 14px 0 4px; letter-spacing: -.01em } p { margin: 6px 0 10px }
figure { margin: 8px 0 } figcaption, .note { color: var(--soft); font-size: 14.5px }
img { max-width: 100%; height: auto; display: block }
.picture { position: relative; max-width: 100%; background: #fff } .option { white-space: nowrap }
.picture i { position: absolute; width: 16px; height: 16px; margin: -8px 0 0 -8px; border-radius: 50% }
.picture i:is(:hover, :focus) { outline: 2px solid #1d2129; z-index: 1 }
.picture i:is(:hover, :focus)::after { content: attr(data-name); position: absolute; left: 50%; bottom: 20px;
  transform: translateX(-50%); padding: 1px 8px; border-radius: 5px; background: #1d2129; color: #fff; font: 13px/1.5
  system-ui, sans-serif; white-space: nowrap; pointer-events: none }
video { display: block; width: 430px; max-width: 100%; margin: 6px 0; background: #111216 }
details { margin: 6px 0 12px } summary { cursor: pointer; color: var(--soft); font-size: 14.5px }
.terms { font-size: 13.5px; color: var(--soft); margin: 2px 0 8px } .terms a { color: var(--blue);
  text-decoration: none } .terms a:hover { text-decoration: underline }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 8px 20px; margin: 10px 0 } dt { font-weight: 650 }
dd { margin: 0 } dt, .state { scroll-margin-top: 3.2rem }
.card p { font-size: 17.5px; margin: 8px 0 }
.numbers { display: flex; flex-wrap: wrap; gap: 10px 34px; margin: 14px 0 4px } .numbers b { display: block;
  font-size: 25px; line-height: 1.2; font-weight: 650 } .numbers span { color: var(--soft); font-size: 13.5px }
.warning { border-left: 5px solid #d55e00; padding: 4px 14px; margin: 8px 0; background: var(--alert) }
.fine { border-left: 5px solid #009e73; padding: 4px 14px; margin: 8px 0; background: var(--well) }
.state { border-top: 1px solid var(--line); padding: 12px 0 2px } .state:first-of-type { border-top: 0 }
.state h3 { font-size: 17px; margin: 0 } .chip { display: inline-block; width: 15px; height: 15px; border-radius: 4px;
  margin-right: 9px; vertical-align: -2px } .state .note { margin: 2px 0 4px 25px }
footer { color: var(--soft); font-size: 13.5px; margin-top: 26px }
code { background: var(--code); border-radius: 4px; padding: 1px 5px; font-size: 92%; overflow-wrap: anywhere }
@media (max-width: 1000px) { nav { overflow-x: auto; white-space: nowrap; text-align: left; padding: 9px 10px;
  scrollbar-width: thin } }
@media (max-width: 700px) { main { padding: 0 8px 40px } section { padding: 6px 12px 14px } h1 { font-size: 25px;
  overflow-wrap: anywhere } .sub { overflow-wrap: anywhere } dl { display: block } dd { margin: 0 0 10px }
  .state .note { margin-left: 0 } .state, details, .wide, .middle { overflow-x: auto }
  .wide .picture { max-width: max(100%, 620px) } .middle .picture { max-width: max(100%, 480px) }
  :is(.state, details) .picture { max-width: none } }
@media print { nav { display: none } section { break-inside: avoid; border: 0 } body { background: #fff } }
"""
MIDDLE, WIDE = 620, 900  # pixels of a picture that on a narrow screen is scrolled: its letters would be too small
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")


class Part(NamedTuple):
    """A section of the page: a heading, a sentence, and what it holds, as HTML."""

    anchor: str
    title: str
    body: str


def image(webp: bytes, words: str, width: int, marks: Sequence[Any] = ()) -> str:
    """An image in the page itself; who points at one of its marks sees a name."""
    data = base64.b64encode(webp).decode()
    shown = f'<img width="{width}" alt="{html.escape(words, quote=True)}" src="data:image/webp;base64,{data}">'
    spots = "".join(map(_spot, marks))
    return f'<div class="picture" style="width:{width}px">{shown}{spots}</div>'


def _spot(mark: Any) -> str:
    place = f"left:{100 * mark.left:.2f}%;top:{100 * mark.top:.2f}%"
    return f'<i tabindex="0" style="{place}" data-name="{html.escape(mark.name, quote=True)}"></i>'


def figure(webp: bytes, words: str, width: int, marks: Sequence[Any] = ()) -> str:
    """An image and what it shows."""
    kind = ' class="wide"' if width > WIDE else ' class="middle"' if width > MIDDLE else ""
    shown = f"<div{kind}>{image(webp, words, width, marks)}</div>"
    return f"<figure>{shown}<figcaption>{_text(words)}</figcaption></figure>"


def folded(words: str, webp: bytes, width: int) -> str:
    """An image behind words that open it."""
    return f"<details><summary>{_text(words)}</summary>{image(webp, words, width)}</details>"


def movie(mp4: bytes, words: str) -> str:
    """A movie in the page itself, which plays when it is asked to."""
    data = base64.b64encode(mp4).decode()
    label = html.escape(f"movie: bouts of {words} side by side", quote=True)
    return (
        f'<video controls loop muted playsinline preload="metadata" aria-label="{label}" '
        f'src="data:video/mp4;base64,{data}"></video>'
    )


def terms(words: Sequence[str]) -> str:
    """Links to what words mean."""
    links = (f'<a href="#{anchor(word)}">{html.escape(word)}</a>' for word in words)
    return f'<p class="terms">Words: {" · ".join(links)}</p>'


def glossary(found: dict[str, str]) -> str:
    """Words and what they mean."""
    rows = (f'<dt id="{anchor(w)}">{html.escape(w)}</dt><dd>{_text(text)}</dd>' for w, text in found.items())
    return f"<dl>{''.join(rows)}</dl>"


def paragraphs(sentences: list[str], kind: str = "") -> str:
    """Each in a paragraph of its own; `code` between backquotes."""
    mark = f' class="{kind}"' if kind else ""
    return "".join(f"<p{mark}>{_code(_text(s))}</p>" for s in sentences)


def _text(words: str) -> str:
    """Words as HTML, in which no line ends within an option such as --states."""
    return OPTION.sub(r'<span class="option">\g<0></span>', html.escape(words))


def _code(text):
    """`this` becomes <code>this</code>; a backquote without a partner stays."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return text
    return "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(parts))


def numbers(found: dict[str, str]) -> str:
    """A few large ones, with what they are below."""
    cells = "".join(f"<div><b>{html.escape(v)}</b><span>{html.escape(k)}</span></div>" for k, v in found.items())
    return f'<div class="numbers">{cells}</div>'


def state(colour: str, name: str, words: str, warning: str, shown: str) -> str:
    """One state: its colour, its name, a sentence, a warning if there is one, and what it looks like."""
    head = f'<h3><span class="chip" style="background:{colour}"></span>{html.escape(name)}</h3>'
    said = paragraphs([warning] if warning else [], "warning")
    return f'<div class="state">{head}<p class="note">{_text(words)}</p>{said}{shown}</div>'


def page(title: str, subtitle: str, parts: list[Part], footer: str) -> str:
    """The whole document."""
    links = "".join(f'<a href="#{p.anchor}">{html.escape(p.title)}</a>' for p in parts)
    body = "".join(f'<section id="{p.anchor}"><h2>{html.escape(p.title)}</h2>{p.body}</section>' for p in parts)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:; media-src data:; '
        "style-src 'unsafe-inline'\">"
        f"<title>{html.escape(title)}</title><style>{STYLE}</style></head><body><nav>{links}</nav><main>"
        f'<h1>{html.escape(title)}</h1><p class="sub">{_text(subtitle)}</p>{body}'
        f"<footer>{html.escape(footer)}</footer></main></body></html>\n"
    )
