"""The same fit on one device, on four virtual devices of one process, and in two processes of two devices each.

    python benchmarks/devices.py                       # lds, 50 steps: bound and parameters must agree to 1e-5
    python benchmarks/devices.py --model slds --steps 50 --json devices.json

All on the CPU, the two processes over loopback. A mean field model amplifies rounding (a state on the edge between two
others), so its numbers are shown and not judged. Also the smoothers of one chain of --length steps, shared out along
time, in float32 against the sequential form in float64.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
WAYS = {"one device": (1, 1), "four devices": (1, 4), "two processes of two": (2, 2)}  # processes, devices of each
LIMIT = 1e-5


def child(arguments) -> None:
    """One process of one way; the first writes what it found."""
    import jax

    from tests import sharded

    if arguments.processes > 1:
        jax.distributed.initialize(arguments.coordinator, arguments.processes, arguments.id)
    found = sharded.trained(arguments.model, arguments.steps) | {"devices": len(jax.devices())}
    if arguments.length and arguments.processes == 1 and len(jax.devices()) > 1:
        found["time"] = along_time(arguments.length)
    if jax.process_index() == 0:
        Path(arguments.out).write_text(json.dumps(found))


def along_time(T: int) -> dict:
    """Largest error of the mean in posterior standard deviations (Gaussian), and of a probability (HMM), float32."""
    import jax
    import jax.numpy as jnp

    from svae.messages import HMMChain, time_sharded
    from svae.messages.gaussian import sequential as gaussian_sequential
    from svae.messages.hmm import sequential as hmm_sequential
    from tests.messages import oracles

    rng, mesh = np.random.default_rng(1), jax.sharding.Mesh(np.array(jax.devices()), ("time",))
    chain = oracles.gaussian_chain(rng, T, 4, missing=0.3)
    hmm = HMMChain(rng.normal(size=5), rng.normal(size=(5, 5)), 3 * rng.normal(size=(T, 5)), np.arange(T) < T - T // 9)
    single = lambda tree: jax.tree.map(lambda x: jnp.asarray(x, x.dtype if x.dtype == bool else np.float32), tree)  # noqa: E731
    x, z = time_sharded.gaussian_smooth(single(chain), mesh), time_sharded.hmm_smooth(single(hmm), mesh)
    with jax.enable_x64(True):
        double = lambda tree: jax.tree.map(jnp.asarray, tree)  # noqa: E731
        a, b = jax.jit(gaussian_sequential.smooth)(double(chain)), jax.jit(hmm_sequential.smooth)(double(hmm))
    a, b = (type(q)(*map(np.asarray, q)) for q in (a, b))
    sd = np.sqrt(np.sum(a.sqrt**2, -1))
    log_z = [abs(float(np.sum(np.asarray(p.log_z, float)) / np.sum(q.log_z)) - 1) for p, q in ((x, a), (z, b))]
    return {
        "steps": T,
        "gaussian_mean_sd": float(np.max(np.abs(np.asarray(x.mean) - a.mean) / sd)),
        "hmm_probability": float(np.max(np.abs(np.asarray(z.states) - b.states))),
        "log_z_relative": log_z,
    }


def run(way: str, arguments, folder: Path) -> dict:
    """All processes of one way."""
    processes, devices = WAYS[way]
    out = folder / f"{processes}-{devices}.json"
    flags = f"--xla_force_host_platform_device_count={devices} --xla_cpu_collective_call_terminate_timeout_seconds=600"
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = ["--model", arguments.model, "--steps", str(arguments.steps), "--length", str(arguments.length)]
    common += ["--processes", str(processes), "--coordinator", f"127.0.0.1:{port}", "--out", str(out)]
    started = [
        subprocess.Popen([sys.executable, __file__, *common, "--id", str(i)], env=environment) for i in range(processes)
    ]
    codes = [process.wait() for process in started]
    if any(codes):
        raise SystemExit(f"{way}: exit codes {codes}")
    return json.loads(out.read_text())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="lds")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--length", type=int, default=10_000, help="of the chains shared out along time; 0: none")
    parser.add_argument("--json", type=Path)
    for name, kind in (("processes", int), ("coordinator", str), ("id", int), ("out", str)):
        parser.add_argument(f"--{name}", type=kind, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.id is not None:
        child(arguments)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        found = {way: run(way, arguments, Path(folder)) for way in WAYS}
    table = compared(found)
    if arguments.json:
        arguments.json.write_text(json.dumps(table, indent=1))
    print(json.dumps(table, indent=1))
    worst = max(max(row["bound"], row["parameters, the worst array"]) for row in table["against one device"].values())
    return int(arguments.model == "lds" and worst > LIMIT)


def compared(found: dict) -> dict:
    """Relative differences from one device, after the last step."""
    from tests.sharded import apart

    one = found["one device"]
    rows = {
        way: {
            "devices": other["devices"],
            "bound": apart(other["bounds"][-1:], one["bounds"][-1:]),
            "worst bound of any step": apart(other["bounds"], one["bounds"]),
            "parameters, the worst array": apart(other["parameters"], one["parameters"]),
        }
        for way, other in found.items()
    }
    return {"against one device": rows, "along time": found["four devices"].get("time")}


if __name__ == "__main__":
    sys.exit(main())
