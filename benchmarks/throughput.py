"""Training frames a second of an SLDS SVAE, and where the time of a step goes.

python benchmarks/throughput.py --batch 256 --length 200                  K = 30, D = 10, frames of 30 x 30
python benchmarks/throughput.py --batch 2 --length 20 --states 4 --latent 3 --side 6 --hidden 16   small, on a CPU
python benchmarks/throughput.py --profile 25                              and the 25 costliest kernels of a step

Frames are those of K slow rotations with noise, made on the device; the model starts with the linear maps and q(theta)
of that system and is unsure of the rest, so that its mean field takes about ten sweeps. The step is the one that `svae
fit` takes, and the model learns on meanwhile: some steps take more sweeps, so that the median and the fastest are told.
Parts are the fastest of several rounds in ms, compiled on their own: they need not add up to the step.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from throughput_problem import problem

from svae import expfam, messages
from svae.bound import value_and_grad
from svae.fitting import updates
from svae.fitting.program import pick, take_all
from svae.fitting.updates import How
from svae.messages import HMMChain, fixed_point
from svae.pgm import _mean_field
from svae.pgm._conditional import chain, mix


def measure(run, rounds):
    """ms of each round, and seconds to the first result."""
    taken = []
    for _ in range(rounds + 1):
        begun = time.perf_counter()
        jax.block_until_ready(run())
        taken.append(time.perf_counter() - begun)
    return 1e3 * np.array(taken[1:]), taken[0]


def training(state, piece):
    """A function that takes one more step of `svae fit` each time, and the models and optimisers that it changes."""
    placed = [state.models, state.optimizer]
    totals = jnp.asarray(float(len(piece.y))), jnp.asarray(float(piece.mask.size))
    key = jax.random.key(0)

    def step():
        taken = take_all(*placed, piece, key, state.restart, *totals, How(value_and_grad))
        placed[:] = taken.model, taken.state
        return taken

    return step, placed


def sweeps(model, piece):
    """Mean-field sweeps of each sequence to the tolerance of a fit."""

    @eqx.filter_jit
    def count(model, piece):
        pgm = model.pgm
        tables = pgm.tables(expfam.moments(model.q))
        potentials = jax.vmap(model.recognize)(piece.y, piece.mask)

        def one(potentials, mask):
            args = tables, pgm.by_block(potentials), mask
            limits = {"tolerance": _mean_field.TOLERANCE, "max_iterations": _mean_field.MAX_ITERATIONS}
            return fixed_point(pgm.sweep, pgm.no_word(args), args, **limits).iterations

        return jax.vmap(one)(potentials, piece.mask)

    return np.asarray(count(model, piece))


def parts(model, piece):
    """The parts of a step, each a function without arguments."""
    tables = model.pgm.tables(expfam.moments(model.q))
    chain_of_states, regression = tables["z"], tables["x"]
    potentials = eqx.filter_jit(lambda net, y, mask: jax.vmap(net)(y, mask))(model.recognize, piece.y, piece.mask)
    node = jnp.zeros((*piece.mask.shape, len(chain_of_states.init.log_prob)), potentials.h.dtype)
    x = jax.random.normal(jax.random.key(2), potentials.h.shape)

    def networks(nets, y, mask, x):
        recognize, observe = nets
        psi = jax.vmap(recognize)(y, mask)
        gamma = observe.draw(key=jax.random.key(3))
        return jnp.sum(psi.J) + jnp.sum(psi.h) + jnp.sum(jax.vmap(gamma.log_prob)(x, y))

    def sweep(node):
        one = lambda n, p, m: model.pgm.sweep({"z": n}, (tables, {"x": p}, m))  # noqa: E731
        return jax.vmap(one)(node, potentials, piece.mask)

    def mixtures(states):
        return mix(regression.first, states[:1]), mix(regression.dynamics, states[1:])

    rows = chain_of_states.init.log_prob, chain_of_states.transitions.log_prob
    hidden = jax.jit(jax.vmap(lambda n, m: HMMChain(*rows, n, m)))(node, piece.mask)
    mixing = jax.jit(jax.vmap(mixtures))
    states = jax.jit(jax.vmap(messages.hmm.smooth))(hidden).states
    chains = jax.jit(jax.vmap(chain))(*mixing(states), potentials, piece.mask)
    smooth, smooth_hidden = jax.vmap(messages.gaussian.smooth), jax.vmap(messages.hmm.smooth)
    of_nodes = lambda n: smooth_hidden(hidden._replace(node=n))  # noqa: E731
    seen = (model.recognize, model.observe), piece.y, piece.mask, x
    plain = {
        "networks": (eqx.filter_jit(networks), seen),
        "networks, gradient": (eqx.filter_jit(eqx.filter_grad(networks)), seen),
        "one sweep": (jax.jit(sweep), (node,)),
        "one sweep, gradient": (jax.jit(lambda n: pulled(sweep, n)), (node,)),
        "mixtures of a sweep": (mixing, (states,)),
        "gaussian smoothing": (jax.jit(smooth), (chains,)),
        "gaussian smoothing, gradient": (jax.jit(lambda c: pulled(smooth, c)), (chains,)),
        "hidden chain": (jax.jit(smooth_hidden), (hidden,)),
        "hidden chain, gradient": (jax.jit(lambda n: pulled(of_nodes, n)), (node,)),
    }
    return {name: lambda run=run, operands=operands: run(*operands) for name, (run, operands) in plain.items()}


def pulled(f, x):
    """f(x), and the derivative of it in x along itself."""
    y, pull = jax.vjp(f, x)
    return y, pull(y)


def optimiser(model, piece):
    gradient = eqx.filter_jit(value_and_grad)(
        model, piece.y, piece.mask, num_data=float(len(piece.y)), key=jax.random.key(0)
    )[1]
    state = updates.init(model, updates.networks_optimizer(model.config))

    @eqx.filter_jit
    def update(model, gradient, state):
        return updates.update(model, gradient, state, updates.networks_optimizer(model.config), 1e-4)

    return lambda: update(model, gradient, state)


def costliest(run, number):
    """(name, calls, ms) of the kernels of one run that take longest."""
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            jax.block_until_ready(run())
        (file,) = Path(folder).rglob("*.xplane.pb")
        data = jax.profiler.ProfileData.from_file(str(file))
    found: dict[str, list] = {}
    for plane in data.planes:
        for line in plane.lines if "GPU" in plane.name or not any("GPU" in p.name for p in data.planes) else ():
            if not line.name.startswith(("Stream", "tf_XLA", "XLA Ops")):
                continue
            for event in line.events:
                found.setdefault(event.name, []).append(event.duration_ns / 1e6)
    ranked = sorted(((name, len(ms), sum(ms)) for name, ms in found.items()), key=lambda row: -row[2])
    return sum(row[2] for row in ranked), ranked[:number]


def by_parts(model, piece, rounds):
    """ms of each part, and how many sweeps the mean field takes."""
    counted = sweeps(model, piece)
    result = {"sweeps_most": int(counted.max()), "sweeps_mean": float(counted.mean())}
    print(f"  mean-field sweeps: {counted.max()} (mean of sequences {counted.mean():.1f})", flush=True)
    for name, run in (parts(model, piece) | {"optimiser": optimiser(model, piece)}).items():
        times, compiled = measure(run, rounds)
        result[name] = float(times.min())
        print(f"  {name:30s} {result[name]:9.3f} ms   first after {compiled:5.1f} s", flush=True)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in {"batch": 256, "length": 200, "states": 30, "latent": 10, "side": 30}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--hidden", type=int, nargs="+", default=[200, 200])
    parser.add_argument("--steps", type=int, default=10, help="steps before the timing, and timed rounds")
    parser.add_argument("--parts", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--profile", type=int, default=0, metavar="N", help="print the N costliest kernels of a step")
    parser.add_argument("--out", default="", help="a JSON file")
    options = parser.parse_args()
    form = messages._form()
    print(f"{jax.devices()[0].device_kind}, {form}; batch {options.batch} x {options.length}", flush=True)
    state, piece = problem(options)
    frames = piece.mask.size
    step, placed = training(state, piece)
    times, first = measure(step, options.steps)
    result = {"form": form, "first_s": first, "steps_ms": times.tolist()}
    for name, ms in {"median": float(np.median(times)), "fastest": float(times.min())}.items():
        result[f"{name}_frames_per_second"] = 1e3 * frames / ms
        print(f"  {1e3 * frames / ms:,.0f} frames/s, the {name} step: {ms:.2f} ms", flush=True)
    print(f"  first step after {first:.1f} s")
    if options.profile:
        total, ranked = costliest(step, options.profile)
        result["kernels_ms"] = total
        print(f"  kernels of a step {total:.2f} ms")
        for name, calls, taken in ranked:
            print(f"  {taken:9.3f} ms {calls:6d} x  {name[:100]}", flush=True)
    if options.parts:
        result |= by_parts(eqx.filter_jit(pick)(placed[0], 0), piece, options.steps)
    if options.out:
        Path(options.out).write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
