"""Programs that are optimised little: their options, and that what they compute stays what it is."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from svae import _compiling


def wave(x):
    return jnp.sin(x) @ jnp.cos(x).T


@pytest.mark.parametrize("form", [_compiling.compiled, _compiling.briefly])
def test_a_program_computes_what_its_function_does(form):
    x = jnp.asarray(np.random.default_rng(0).normal(size=(5, 7)), jnp.float32)
    program = form(wave)
    np.testing.assert_allclose(program(x), wave(x), rtol=1e-5, atol=1e-6)
    inside = jax.jit(lambda x: program(x) + 1)  # options are those of the outer program
    np.testing.assert_allclose(inside(x), wave(x) + 1, rtol=1e-5, atol=1e-6)
    slope, expected = (jax.grad(lambda x, f=f: jnp.sum(f(x)))(x) for f in (program, wave))  # outside of any program
    np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-5)
    assert program.__name__ == "wave"


def test_what_a_person_asks_of_the_compiler_stays(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "")
    every = _compiling.options(0)
    assert every[_compiling.LEVEL] == 0 and set(_compiling.LESS) < set(every)
    monkeypatch.setenv("XLA_FLAGS", f"--{_compiling.LEVEL}=3 --xla_something=1")
    assert _compiling.options(1) == _compiling.LESS


def test_other_devices_have_options_of_their_own(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert _compiling.options(0) == {}


def test_an_option_that_xla_has_no_more_is_left_out(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.setattr(_compiling, "LESS", {"xla_cpu_of_another_time": True})
    assert _compiling.options(0) == {_compiling.LEVEL: 0}
