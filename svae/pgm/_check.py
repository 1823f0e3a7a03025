"""Which graphs can be inferred; the others are refused in one sentence that names the block and what is allowed."""

import difflib
import keyword
from collections.abc import Mapping
from typing import Any

from svae.pgm._block import AbstractBlock, GraphError, names, parents

RESERVED = ("show", "solve")


def ordered(blocks: Mapping[str, Any], show: str | None) -> list[str]:
    """The names, parents before children and otherwise in the order given; GraphError where there is no such graph."""
    if not blocks:
        raise GraphError('a graph needs blocks by name, such as graph(z=Markov(20), x=Dynamics(8, given="z"))')
    for name, block in blocks.items():
        _check_block(name, block)
    for name, block in blocks.items():
        _check_parents(name, block, blocks)
    order = _in_order(blocks)
    if not any(block.continuous for block in blocks.values()):
        raise GraphError("the graph has no continuous block, which frames are decoded from: add Normal or Dynamics")
    _check_children(blocks)
    _check_shown(blocks, show)
    _check_inputs(blocks)
    _check_by(blocks)
    _check_observed(blocks)
    return order


def _check_block(name: str, block: Any) -> None:
    if keyword.iskeyword(name) or not name.isidentifier() or name.startswith("_"):
        raise GraphError(
            f"{name!r} cannot name a block: names are words of letters and digits that begin with a letter"
        )
    if not isinstance(block, AbstractBlock):
        hint = f"; write {block.__name__}(...)" if isinstance(block, type) else ""
        raise GraphError(f"{name} is {block!r}, not a block such as Choice, Markov, Normal or Dynamics{hint}")


def _check_parents(name: str, block: AbstractBlock, blocks: Mapping[str, AbstractBlock]) -> None:
    for option in ("given", "add", "after"):
        listed = getattr(block, option, ())
        if not isinstance(listed, str | tuple) or not all(isinstance(parent, str) for parent in names(listed)):
            raise GraphError(f"{option}= of {name} must be the name of a block, or a tuple of names, not {listed!r}")
    if names(block.given) and names(getattr(block, "add", ())):
        raise GraphError(f"{name} has parents in both given= and add=: a table over states or offsets, not both")
    found = parents(block)
    _check_earlier(name, block, blocks)
    for parent in found:
        _check_exists(name, parent, blocks)
        if parent == name:
            raise GraphError(
                f"{name} cannot be its own parent at the same frame; Markov and Dynamics remember the last one"
            )
        if blocks[parent].continuous:
            raise GraphError(f"{name} has the continuous parent {parent}; parents can be discrete blocks only")
    if len(set(found)) < len(found):
        raise GraphError(f"{name} names a parent twice: {', '.join(found)}")


def _check_exists(name: str, parent: str, blocks: Mapping[str, AbstractBlock]) -> None:
    if parent not in blocks:
        near = difflib.get_close_matches(parent, blocks, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"the blocks are {', '.join(blocks)}"
        raise GraphError(f"{name} has a parent {parent!r} that does not exist; {hint}")


def _check_earlier(name: str, block: AbstractBlock, blocks: Mapping[str, AbstractBlock]) -> None:
    earlier = names(block.after)
    for parent in earlier:
        _check_exists(name, parent, blocks)
        if parent == name:
            raise GraphError(f"{name} remembers its own last state already: leave it out of after=")
    if len(set(earlier)) < len(earlier):
        raise GraphError(f"{name} names a parent of the frame before twice: {', '.join(earlier)}")
    driving = [parent for parent in earlier if blocks[parent].continuous]
    if len(driving) > 1:
        raise GraphError(
            f"{name} has {len(driving)} continuous parents in after=, {', '.join(driving)}; one is allowed"
        )


def _ready(name: str, order: list[str], blocks: Mapping[str, AbstractBlock]) -> bool:
    """Whether its parents are placed, and, of a continuous one, the blocks that it drives from the frame before."""
    block = blocks[name]
    driven = [n for n, other in blocks.items() if block.continuous and name in names(other.after)]
    return all(other in order for other in (*parents(block), *driven))


def _in_order(blocks: Mapping[str, AbstractBlock]) -> list[str]:
    order: list[str] = []
    while len(order) < len(blocks):
        ready = [name for name in blocks if name not in order and _ready(name, order, blocks)]
        if not ready:
            left = [name for name in blocks if name not in order]
            left = [name for name in left if any(name in parents(blocks[other]) for other in left)]
            raise GraphError(
                f"{', '.join(left)} are each other's parents at the same frame: a cycle has no first block"
            )
        order.append(ready[0])
    return order


def _check_children(blocks: Mapping[str, AbstractBlock]) -> None:
    used = {parent for block in blocks.values() for parent in (*parents(block), *names(block.after))}
    for name, block in blocks.items():
        if not block.continuous and name not in used:
            raise GraphError(
                f'{name} has no child, so no frame says anything of it: name it in given="{name}" of another'
            )
    if apart := [name for name in blocks if name not in _heard(blocks)]:
        raise GraphError(
            f"{', '.join(apart)} have only each other for children, so no frame says anything of them: "
            f'name one in given="{apart[0]}" of a continuous block'
        )


def _heard(blocks: Mapping[str, AbstractBlock]) -> set[str]:
    """The continuous blocks, and all that have one of them for a child, or a child of a child."""
    found = {name for name, block in blocks.items() if block.continuous}
    for _ in blocks:
        found |= {parent for name in found for parent in (*parents(blocks[name]), *names(blocks[name].after))}
    return found


def _check_inputs(blocks: Mapping[str, AbstractBlock]) -> None:
    wanted = {name: block.inputs for name, block in blocks.items() if block.inputs}
    if len(set(wanted.values())) > 1:
        listed = ", ".join(f"{name} wants {number}" for name, number in wanted.items())
        raise GraphError(f"all blocks with inputs see the same columns, but {listed}: give them one number")


def _check_by(blocks: Mapping[str, AbstractBlock]) -> None:
    wanted = {name: block.by for name, block in blocks.items() if block.by}
    if len(set(wanted.values())) > 1:
        listed = ", ".join(f"{name} wants {word}" for name, word in wanted.items())
        raise GraphError(f"a recording has one group, but {listed}: write the same word in by= of both")
    for name in wanted:
        block = blocks[name]
        if block.inputs or any(blocks[parent].continuous for parent in names(block.after)):
            raise GraphError(
                f"{name} has transitions by {block.by} and others that lean, by inputs= or a continuous block in "
                "after=; one of both is allowed"
            )


def _check_observed(blocks: Mapping[str, AbstractBlock]) -> None:
    observed = [name for name, block in blocks.items() if block.observed]
    others = [name for name, block in blocks.items() if block.continuous and name not in observed[:1]]
    if observed and others:
        raise GraphError(
            f"{observed[0]} is observed, the frame itself, so it must be the only continuous block: "
            f"leave out {', '.join(others)}, or observed=True"
        )


def _check_shown(blocks: Mapping[str, AbstractBlock], show: str | None) -> None:
    discrete = [name for name, block in blocks.items() if not block.continuous]
    if show is not None and show not in discrete:
        allowed = f"one of {', '.join(discrete)}" if discrete else "left out: there is no discrete block"
        raise GraphError(f"show={show!r} must be {allowed}")


def check_inputs(wanting: list[str], n: int, found: tuple[int, ...] | None, length: int) -> None:
    """Raise unless an array of shape `found`, or none, is n columns for `length` frames."""
    if (found is None and n == 0) or found == (length, n):
        return
    wanted = f"{n} inputs at every frame, for {', '.join(wanting)}" if n else "no inputs"
    given = "it was given none" if found is None else f"it was given an array of shape {found}"
    raise GraphError(f"the latent graph takes {wanted}, and for {length} frames {given}")
