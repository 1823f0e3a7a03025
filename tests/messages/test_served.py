"""The table of which form serves what: it is the one of the documentation, and kernels serve where it says so."""

import importlib
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from svae import messages
from svae.messages import GaussianChain, HMMChain, kernels, served

PAGE = Path(__file__).parents[2] / "docs" / "performance.md"


def test_the_documentation_has_this_table():
    assert served.markdown() in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("form", served.TABLE, ids=lambda f: f"{f.chain} {f.module}")
def test_a_form_serves_up_to_its_size_and_another_beyond(form):
    for backend in form.backends:
        if form.largest is not None:
            assert served.row(form.chain, form.largest, backend) is form
            assert served.row(form.chain, form.largest + 1, backend) is not form
        assert served.row(form.chain, 10**6, backend).largest is None


@pytest.mark.parametrize("backend", served.ALL)
def test_every_chain_is_served_everywhere(backend):
    assert {served.row(f.chain, 1, backend).chain for f in served.TABLE} == {f.chain for f in served.TABLE}


@pytest.mark.parametrize("form", served.TABLE, ids=lambda f: f"{f.chain} {f.module}")
def test_a_form_has_the_verbs_of_its_chain(form):
    if form.module.endswith("compiled") and not kernels.status().serve:
        pytest.skip(kernels.status().reason)
    module = importlib.import_module(f"svae.messages.{form.module}")
    verbs = {"filter", "smooth", "log_normalizer", "sample"}
    verbs |= {"viterbi"} if form.chain != served.GAUSSIAN else set()
    verbs |= {"smooth_pairs"} if form.chain == served.VARYING else set()
    assert all(callable(getattr(module, verb)) for verb in verbs)


def test_the_size_decides_which_form_runs():
    """The dispatch is the table's: a chain that is too large for the kernels calls none."""

    def calls(D):
        shapes = [(D,), (D, D), (1, D, D), (1, D), (1, D, D), (2, D, D), (2, D)]
        chain = GaussianChain(*(jax.ShapeDtypeStruct(s, jnp.float32) for s in shapes))
        return "ffi_call" in str(jax.make_jaxpr(messages.gaussian.smooth)(chain))

    largest = served.here()[0].largest
    assert calls(largest) == kernels.status().serve and not calls(largest + 1) if largest else not calls(2)


@pytest.mark.skipif(not kernels.status().serve, reason=kernels.status().reason)
@pytest.mark.parametrize("steps, name", [(None, "svae_hmm_"), (1, "svae_hmm_"), (4, "svae_hmm_varying_")])
def test_kernels_serve_hidden_chains(steps, name):
    from svae.messages.hmm import compiled as hmm_compiled

    log_trans = jnp.zeros((3, 3) if steps is None else (steps, 3, 3))
    chain = HMMChain(jnp.zeros(3), log_trans, jnp.zeros((5, 3)), jnp.ones(5, bool))
    for quantity in ("smooth", "filter", "viterbi"):
        assert f"target_name={name}{quantity}\n" in str(jax.make_jaxpr(getattr(hmm_compiled, quantity))(chain)) + "\n"
    assert "svae_hmm_varying_smooth" in str(jax.make_jaxpr(hmm_compiled.smooth_pairs)(chain))
