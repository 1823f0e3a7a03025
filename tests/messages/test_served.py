"""The table of which form serves what: it is the one of the documentation, and kernels serve where it says so."""

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from svae.messages import HMMChain, kernels, served

PAGE = Path(__file__).parents[2] / "docs" / "performance.md"


def test_the_documentation_has_this_table():
    assert served.markdown() in PAGE.read_text(encoding="utf-8")


@pytest.mark.skipif(not kernels.status().serve, reason=kernels.status().reason)
@pytest.mark.parametrize("steps, name", [(None, "svae_hmm_"), (1, "svae_hmm_"), (4, "svae_hmm_varying_")])
def test_kernels_serve_hidden_chains(steps, name):
    from svae.messages import hmm_kernels

    log_trans = jnp.zeros((3, 3) if steps is None else (steps, 3, 3))
    chain = HMMChain(jnp.zeros(3), log_trans, jnp.zeros((5, 3)), jnp.ones(5, bool))
    for quantity in ("smooth", "filter", "viterbi"):
        assert f"target_name={name}{quantity}\n" in str(jax.make_jaxpr(getattr(hmm_kernels, quantity))(chain)) + "\n"
    assert "svae_hmm_varying_smooth" in str(jax.make_jaxpr(hmm_kernels.smooth_pairs)(chain))
