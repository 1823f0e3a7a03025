"""The training step of an LDS and an SLDS SVAE as one writes it from the paper: jnp.linalg and autodiff.

The chains are those of `_plain_chains`, under `vmap` over the batch. Globals are natural parameters, as dicts.
"""

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax.scipy.special import digamma, multigammaln

from svae.bench._plain_chains import LOG_2PI


def T(A):
    return jnp.swapaxes(A, -1, -2)


# --- q(theta): natural parameters, expected statistics, log partition functions ------------------------------------


def mniw_standard(eta):
    """M, S of natural parameters (uuT = K, uxT = K M', xxT = S + M K M', nu)."""
    M = T(jnp.linalg.solve(eta["uuT"], eta["uxT"]))
    return M, eta["xxT"] - M @ eta["uxT"]


def mniw_log_partition(eta):
    (D, U), (_, S) = (eta["uxT"].shape[-1], eta["uxT"].shape[-2]), mniw_standard(eta)
    wishart = eta["nu"] * D / 2 * jnp.log(2.0) + multigammaln(eta["nu"] / 2, D) - eta["nu"] / 2 * logdet(S)
    return wishart + D * U / 2 * LOG_2PI - D / 2 * logdet(eta["uuT"])


def logdet(A):
    return jnp.linalg.slogdet(A)[1]


def mniw_expected(eta):
    """E of (-W'PW / 2, W'P, -P / 2, -log|Sigma| / 2)."""
    M, S = mniw_standard(eta)
    D = S.shape[-1]
    P = eta["nu"][..., None, None] * jnp.linalg.inv(S)
    WPW = D * jnp.linalg.inv(eta["uuT"]) + T(M) @ P @ M
    halves = eta["nu"][..., None] / 2 - jnp.broadcast_to(jnp.arange(D) / 2, (*eta["nu"].shape, D))
    log_sigma = logdet(S) - D * jnp.log(2.0) - jnp.sum(digamma(halves), -1)
    return {"uuT": -WPW / 2, "uxT": T(M) @ P, "xxT": -P / 2, "nu": -log_sigma / 2}


def dirichlet_log_partition(counts):
    return jnp.sum(lax.lgamma(counts), -1) - lax.lgamma(jnp.sum(counts, -1))


def dirichlet_expected(counts):
    return digamma(counts) - digamma(jnp.sum(counts, -1, keepdims=True))


def is_mniw(eta):
    return isinstance(eta, dict) and "uuT" in eta


def expected(q):
    return jax.tree.map(lambda e: mniw_expected(e) if is_mniw(e) else dirichlet_expected(e), q, is_leaf=is_mniw)


def log_partition(q):
    parts = jax.tree.map(
        lambda e: jnp.sum(mniw_log_partition(e) if is_mniw(e) else dirichlet_log_partition(e)), q, is_leaf=is_mniw
    )
    return sum(jax.tree.leaves(parts))


def global_kl(q, prior, stats):
    inner = jax.tree.map(lambda a, b, t: jnp.sum((a - b) * t), q, prior, stats)
    return sum(jax.tree.leaves(inner)) - log_partition(q) + log_partition(prior)


# --- networks -----------------------------------------------------------------------------------------------------


def linear(layer, x):
    return x @ layer.weight.T + layer.bias


def features(layers, x):
    for layer in layers:
        x = jnp.tanh(linear(layer, x))
    return x


def recognize(net, y):
    """Potentials J (B, T, D, D), h (B, T, D) of frames (B, T, *event): a guess and a diagonal precision."""
    y = y.reshape(*y.shape[:2], -1)
    f = features(net.trunk.trunk.layers, y)
    mu = linear(net.head.guess, f) + (0 if net.linear is None else (y - net.linear.b) @ net.linear.V.T)
    raw = 1e4 * jnp.tanh(linear(net.head.factor, f) / 1e4)
    precision = jax.nn.softplus(raw) ** 2 + 1e-4
    return precision[..., None] * jnp.eye(mu.shape[-1]), precision * mu


def log_likelihood(net, x, y):
    """log N(y; network(x), sd^2), summed over pixels."""
    y = y.reshape(*y.shape[:2], -1)
    location = linear(net.head.layer, features(net.trunk.layers, x))
    if net.linear is not None:
        location = location + x @ net.linear.W.T + net.linear.b
    log_sd = net.likelihood.scale.log_sd.reshape(-1)
    return jnp.sum(-0.5 * ((y - location) / jnp.exp(log_sd)) ** 2 - log_sd - LOG_2PI / 2, -1)


# --- the step -----------------------------------------------------------------------------------------------------


def value_and_grad(chain, prior, q, networks, y, noise, num_data):
    """The bound, its natural gradient in q, and its gradient in the networks; chain(t, J, h, noise) -> KL, sample."""
    scale = num_data / len(y)

    def evidence(t, networks):
        J, h = recognize(networks[0], y)
        kl, x = jax.vmap(chain, (None, 0, 0, 0))(t, J, h, noise)
        return scale * (jnp.sum(log_likelihood(networks[1], x, y)) - jnp.sum(kl))

    stats = expected(q)
    value, (d_stats, d_networks) = jax.value_and_grad(evidence, (0, 1))(stats, networks)
    symmetric = lambda path, d: (d + T(d)) / 2 if path[-1].key in ("uuT", "xxT") else d  # noqa: E731
    d_stats = jax.tree_util.tree_map_with_path(symmetric, d_stats)
    natural = jax.tree.map(lambda p, e, d: p - e + d, prior, q, d_stats)
    return value - global_kl(q, prior, stats), natural, d_networks


def make_step(chain, prior, optimizer, rho, num_data, frames):
    """A jitted step: natural for q, Adam for the networks."""

    @jax.jit
    def step(q, networks, state, y, noise):
        bound, natural, gradient = value_and_grad(chain, prior, q, networks, y, noise, num_data)
        changes, state = optimizer.update(jax.tree.map(lambda g: -g / frames, gradient), state, networks)
        q = jax.tree.map(lambda e, d: e + rho * d, q, natural)
        return q, optax.apply_updates(networks, changes), state, bound

    return step
