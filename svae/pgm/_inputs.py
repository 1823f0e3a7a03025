"""What the blocks of a graph take beside their own tables: known inputs, frame by frame, and ordinary parameters."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from svae.pgm._check import check_inputs
from svae.pgm._sweep import Node


def tables(graph: Any, moments: Any, inputs: Float[Array, "T n"] | None) -> dict[str, Any]:
    """Expected statistics as the sweeps take them, by block."""
    found = ((node, getattr(moments, node.name)) for node in graph.nodes)
    return {node.name: node.block.tables(own, **beside(graph, node, inputs)) for node, own in found}


def beside(graph: Any, node: Node, inputs: Any) -> dict[str, Any]:
    """Inputs and ordinary parameters as arguments, of a block that takes any."""
    known = {"inputs": inputs} if node.block.inputs else {}
    own = () if node.block.by else getattr(graph.ordinary, node.name, ())
    return known | ({"ordinary": own} if jax.tree.leaves(own) else {})


def known(graph: Any, inputs: Any, mask: Bool[Array, " T"]) -> Any:
    """The inputs, 0 at padding; GraphError unless they are what the graph wants."""
    check(graph, inputs, len(mask))
    return jnp.where(mask[:, None], inputs, 0) if graph.inputs else None


def check(graph: Any, inputs: Any, length: int) -> None:
    """Raise unless inputs are what the graph wants for `length` frames."""
    wanting = [node.name for node in graph.nodes if node.block.inputs]
    check_inputs(wanting, graph.inputs, None if inputs is None else np.shape(inputs), length)
