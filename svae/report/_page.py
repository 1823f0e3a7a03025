"""One page of HTML that needs nothing else: style and images are in it, and it asks no network."""

import base64
import html
from typing import NamedTuple

STYLE = """
:root { --ink: #1d2129; --soft: #5b6470; --line: #e3e6ea; --paper: #ffffff; --ground: #f5f6f8; --blue: #2166ac }
* { box-sizing: border-box } html { scroll-behavior: smooth; scroll-padding-top: 3.2rem }
body { margin: 0; background: var(--ground); color: var(--ink); font: 16px/1.55 system-ui, "Segoe UI", Helvetica, Arial,
  sans-serif }
main { max-width: 1080px; margin: 0 auto; padding: 0 20px 60px }
nav { position: sticky; top: 0; z-index: 2; background: rgba(255, 255, 255, .94); border-bottom: 1px solid var(--line);
  padding: 9px 20px; text-align: center; font-size: 14px }
nav a { color: var(--soft); text-decoration: none; margin: 0 9px; white-space: nowrap }
nav a:hover { color: var(--blue) }
h1 { font-size: 32px; margin: 34px 0 2px; letter-spacing: -.02em } .sub { color: var(--soft); margin: 0 0 18px }
section { background: var(--paper); border: 1px solid var(--line); border-radius: 10px; padding: 8px 24px 20px;
  margin: 18px 0 }
h2 { font-size: 21px; margin: 14px 0 4px; letter-spacing: -.01em } p { margin: 6px 0 10px }
figure { margin: 8px 0 } figcaption, .note { color: var(--soft); font-size: 14.5px }
img { max-width: 100%; height: auto;
  display: block }
.card p { font-size: 17.5px; margin: 8px 0 }
.numbers { display: flex; flex-wrap: wrap; gap: 10px 34px; margin: 14px 0 4px } .numbers b { display: block;
  font-size: 25px; line-height: 1.2; font-weight: 650 } .numbers span { color: var(--soft); font-size: 13.5px }
.warning { border-left: 5px solid #d55e00; padding: 4px 14px; margin: 8px 0; background: #fff6ef }
.fine { border-left: 5px solid #009e73; padding: 4px 14px; margin: 8px 0; background: #f0faf6 }
.state { border-top: 1px solid var(--line); padding: 12px 0 2px } .state:first-of-type { border-top: 0 }
.state h3 { font-size: 17px; margin: 0 } .chip { display: inline-block; width: 15px; height: 15px; border-radius: 4px;
  margin-right: 9px; vertical-align: -2px } .state .note { margin: 2px 0 4px 25px }
footer { color: var(--soft); font-size: 13.5px; margin-top: 26px }
code { background: #eef0f3; border-radius: 4px; padding: 1px 5px; font-size: 92%; overflow-wrap: anywhere }
@media print { nav { display: none } section { break-inside: avoid; border: 0 } body { background: #fff } }
"""


class Part(NamedTuple):
    """A section of the page: a heading, a sentence, and what it holds, as HTML."""

    anchor: str
    title: str
    body: str


def image(webp: bytes, words: str, width: int) -> str:
    """An image in the page itself."""
    data = base64.b64encode(webp).decode()
    return f'<img width="{width}" alt="{html.escape(words, quote=True)}" src="data:image/webp;base64,{data}">'


def figure(webp: bytes, words: str, width: int) -> str:
    """An image and what it shows."""
    return f"<figure>{image(webp, words, width)}<figcaption>{html.escape(words)}</figcaption></figure>"


def paragraphs(sentences: list[str], kind: str = "") -> str:
    """Each in a paragraph of its own; `code` between backquotes."""
    mark = f' class="{kind}"' if kind else ""
    return "".join(f"<p{mark}>{_code(html.escape(s))}</p>" for s in sentences)


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


def state(colour: str, name: str, words: str, webp: bytes, width: int) -> str:
    """One state: its colour, its name, a sentence, a figure."""
    head = f'<h3><span class="chip" style="background:{colour}"></span>{html.escape(name)}</h3>'
    return f'<div class="state">{head}<p class="note">{html.escape(words)}</p>{image(webp, name, width)}</div>'


def page(title: str, subtitle: str, parts: list[Part], footer: str) -> str:
    """The whole document."""
    links = "".join(f'<a href="#{p.anchor}">{html.escape(p.title)}</a>' for p in parts)
    body = "".join(f'<section id="{p.anchor}"><h2>{html.escape(p.title)}</h2>{p.body}</section>' for p in parts)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:; '
        "style-src 'unsafe-inline'\">"
        f"<title>{html.escape(title)}</title><style>{STYLE}</style></head><body><nav>{links}</nav><main>"
        f'<h1>{html.escape(title)}</h1><p class="sub">{html.escape(subtitle)}</p>{body}'
        f"<footer>{html.escape(footer)}</footer></main></body></html>\n"
    )
