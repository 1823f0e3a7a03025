"""What a graph is called in words, and its arrows."""

from typing import Any

KNOWN = {  # kinds of blocks with how many parents each -> the name of the field
    ("Normal 0",): "a Gaussian latent with learned mean and covariance",
    ("Choice 0", "Normal 1"): "a mixture of Gaussians",
    ("Markov 0", "Normal 1"): "a hidden Markov model",
    ("Dynamics 0",): "a linear dynamical system",
    ("Dynamics 0 nonlinear",): "a nonlinear dynamical system",
    ("Markov 0", "Dynamics 1 nonlinear"): "a switching nonlinear dynamical system",
    ("Markov 0", "Dynamics 1"): "a switching linear dynamical system",
    ("SemiMarkov 0", "Normal 1"): "a hidden semi-Markov model",
    ("SemiMarkov 0", "Dynamics 1"): "a switching linear dynamical system with durations",
    ("Markov 0 after x", "Dynamics 1"): "a recurrent switching linear dynamical system",
    ("Dynamics 0 observed",): "a vector autoregression",
    ("Markov 0", "Dynamics 1 observed"): "an autoregressive hidden Markov model",
    ("SemiMarkov 0", "Dynamics 1 observed"): "an autoregressive hidden semi-Markov model",
}


BEFORE, AGAIN = "₋₁", "↻"  # of the frame before; follows itself


def title(nodes: tuple[Any, ...]) -> str:
    """The name that the field has for a graph; for others, block by block."""
    kinds = tuple(f"{type(node.block).__name__} {len(node.parents)}{_lag(node)}{_seen(node)}" for node in nodes)
    if len(nodes) == 1 and not getattr(nodes[0].block, "learned", True):
        return "a variational autoencoder"
    plain = not any(getattr(node.block, "add", ()) or node.block.inputs or node.block.by for node in nodes)
    return KNOWN[kinds] if plain and kinds in KNOWN else f"a graph of {_listed([_words(node) for node in nodes])}"


def arrows(nodes: tuple[Any, ...]) -> list[tuple[str, str, bool]]:
    """Every arrow (from, to, whether it comes from the frame before)."""
    within = [(parent, node.name, False) for node in nodes for parent in node.parents]
    before = [(parent, node.name, True) for node in nodes for parent in node.earlier]
    return within + before + [(node.name, node.name, True) for node in nodes if node.block.remembers]


def drawn(pgm: Any) -> list[str]:
    """A line for each block: its parents, an arrow, the block, and what it is; the frames y come last.

    Args:
        pgm: A graph.

    Returns:
        Lines of text.

    Examples:
        >>> from svae.pgm import Dynamics, Markov, drawn, graph
        >>> len(drawn(graph(z=Markov(3), x=Dynamics(2, given="z"))))
        3
    """
    rows = []
    for node in pgm.nodes:
        into = [(above, earlier) for above, to, earlier in pgm.arrows if to == node.name]
        parents = [f"{above}{BEFORE if earlier else ''}" for above, earlier in into if above != node.name]
        joined = (" + " if getattr(node.block, "add", ()) else ", ").join(parents)
        itself = f"{node.name} {AGAIN}" if (node.name, True) in into else node.name
        rows.append((f"{joined} → {itself}" if joined else itself, _sized(node)))
    how = "the frame itself, or its projection" if pgm.observed else "the frame, by a network"
    rows.append((f"{', '.join(pgm.continuous)} → y", how))
    width = max(len(left) for left, _ in rows)
    return [f"{left:{width}}   {words}" for left, words in rows]


def _sized(node: Any) -> str:
    """Kind and size of a block."""
    size = f"{node.block.size} {'dimensions' if node.block.continuous else 'states'}"
    longest = getattr(node.block, "longest", None)
    more = f", bouts of at most {longest} frames" if longest else ""
    more += f", with a network of {_listed([str(n) for n in node.block.hidden])}" if node.block.nonlinear else ""
    more += f", transitions of its own for each {node.block.by}" if node.block.by else ""
    return f"{type(node.block).__name__}, {size}{more}"


def _words(node: Any) -> str:
    kind, size = type(node.block).__name__, node.block.size
    what = f"{size} dimensions" if node.block.continuous else f"{size} states"
    listed = _listed(list(node.parents)) if node.parents else ""
    above = f", plus offsets of {listed}" if getattr(node.block, "add", ()) else f" given {listed}" if listed else ""
    known = f" with {node.block.inputs} inputs" if node.block.inputs else ""
    own = f" by {node.block.by}" if node.block.by else ""
    return f"{node.name} ({kind}, {what}{above}{_lag(node)}{known}{own}{_seen(node)})"


def _lag(node: Any) -> str:
    return f" after {_listed(list(node.earlier))}" if node.earlier else ""


def _seen(node: Any) -> str:
    return (" nonlinear" if node.block.nonlinear else "") + (" observed" if node.block.observed else "")


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
