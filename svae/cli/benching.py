"""The verb that measures this machine: bench."""

from typing import Any, Literal

from svae.cli._app import Json, verb
from svae.cli._machine import use_compilation_cache, use_few_heaps
from svae.cli._print import print_json, print_table, report


@verb
def bench(*, model: Literal["lds", "slds"] = "lds", json: Json = False):
    """Measure message passing and a training step on this machine, beside the same written plainly in JAX.

    Takes about 50 s of processor time with lds the first time, longer with slds. Read the ratios: contestants run in
    turn, and a busy machine slows all of them.

    Args:
        model: The model whose training step is measured: 32 sequences of 200 frames of 30 x 30 pixels.
    """
    use_few_heaps()
    use_compilation_cache()
    from svae.bench import bench as measure

    found = measure(model)
    if json:
        print_json(found)
    else:
        _show(found)


def _show(found: dict[str, Any]) -> None:
    print(found["message_passing"])
    report(found["ceilings"], "ceilings", False)
    print_table("smoothing", list(found["chains"][0]), [list(row.values()) for row in found["chains"]])
    report(found["step"], "a training step", False)
