"""The hidden Markov chain by products of probabilities: equal to messages in logarithms, and honest where it is not."""

import jax
import jax.numpy as jnp
import numpy as np

from svae.messages import HMMChain
from svae.messages.hmm import products as hmm_products
from svae.messages.hmm import sequential as hmm_sequential
from svae.messages.hmm.chain import centre
from tests.messages import oracles
from tests.messages.test_hmm import on_device


def by_products(*potentials_and_mask):
    return hmm_products.smooth(centre(HMMChain(*potentials_and_mask)))[0]


def in_logs(*potentials_and_mask):
    return hmm_sequential._smooth_in_logs(centre(HMMChain(*potentials_and_mask)))


def pulled(f, chain):
    """f of the chain, and the cotangents of its potentials that the sines of its values pull back."""
    q, pull = jax.vjp(lambda *potentials: f(*potentials, chain.mask), *chain[:3])
    return q, pull(jax.tree.map(jnp.sin, q))


def hostile(T, K):
    """Nodes that ask for switches which single precision holds impossible."""
    log_trans, wanted = -200 * (1 - np.eye(K)), np.eye(K)[np.arange(T) % K]
    arrays = np.full(K, -np.log(K)), log_trans, 1000 * (wanted - 1)
    return HMMChain(*(jnp.asarray(x, jnp.float32) for x in arrays), jnp.ones(T, bool))


def test_products_are_the_messages_in_logarithms(x64):
    """Values and gradients; more steps than one block of pair counts, with padding and impossible states."""
    chain = on_device(oracles.hmm_chain(np.random.default_rng(0), T=300, K=4, real=280, impossible=True))
    assert hmm_products.smooth(centre(chain))[1]
    got, want = (jax.jit(lambda c, f=f: pulled(f, c))(chain) for f in (by_products, in_logs))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-10, rtol=1e-10), got, want)


def test_padding_may_lie_between_steps(x64):
    chain = on_device(oracles.hmm_chain(np.random.default_rng(1), T=8, K=3))
    chain = chain._replace(mask=chain.mask.at[jnp.array([2, 3, 6])].set(False))
    got, want = (jax.jit(f)(*chain) for f in (by_products, in_logs))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-12), got, want)


def test_products_say_where_they_may_have_lost_something():
    chain = hostile(5, 3)
    trusted = jax.jit(lambda chain: hmm_products.smooth(centre(chain))[1])
    assert trusted(chain._replace(node=chain.node / 1000))
    assert not trusted(chain)
    assert not trusted(chain._replace(log_trans=jnp.full((3, 3), -jnp.inf)))


def test_one_sequence_that_products_cannot_do_takes_its_batch_to_logarithms():
    chain = hostile(5, 3)
    node = jnp.stack([chain.node / 1000, chain.node])

    def run(smooth):
        return jax.jit(lambda node: pulled(jax.vmap(smooth, (None, None, 0, None)), chain._replace(node=node)))(node)

    got, want = run(lambda *c: hmm_sequential.smooth(HMMChain(*c))), run(in_logs)
    assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves(got))
    jax.tree.map(np.testing.assert_array_equal, got, want)


def test_a_batch_still_takes_one_branch():
    """Under vmap, nested too, the choice stays a choice: what is not needed is not run."""
    chain = hostile(4, 3)
    nodes = jnp.zeros((2, 5, *chain.node.shape), jnp.float32)
    smooth = jax.vmap(jax.vmap(lambda node: hmm_sequential.smooth(chain._replace(node=node))))
    branches = [e for e in jax.make_jaxpr(smooth)(nodes).eqns if e.primitive.name == "cond"]
    assert len(branches) == 1 and branches[0].invars[0].aval.shape == ()


def test_derivatives_are_numbers_where_products_are_not_trusted():
    """Sums between the least number of the type and what is trusted once had infinite inverses, and 0 times those."""
    chain = oracles.hmm_chain(np.random.default_rng(3), T=50, K=30)
    log_trans = np.where(np.eye(30, dtype=bool), 0, chain.log_trans - 60)
    arrays = chain.log_init, log_trans, 30 * (chain.node - 20)
    chain = HMMChain(*(jnp.asarray(x, jnp.float32) for x in arrays), jnp.asarray(chain.mask))
    assert not hmm_products.smooth(centre(chain))[1]
    forms = lambda *c: hmm_sequential.smooth(HMMChain(*c)), in_logs
    got, want = (jax.jit(lambda c, f=f: pulled(f, c))(chain) for f in forms)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-4, rtol=1e-4), got, want)
