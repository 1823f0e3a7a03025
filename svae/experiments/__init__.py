"""The paper's experiments and the demo: each module has `run(out, *, seed, progress) -> numbers` and writes figures."""
