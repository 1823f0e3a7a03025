"""Linear-Gaussian conditionals p(x | u, z) in expectation under q(theta), and their mixtures over q(z).

Everything is formed from residuals about the mean conditional: an inner product of plain natural parameters and
statistics loses all digits in float32 when the latents are smooth (Var(x) / Q large).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from svae import messages
from svae._linalg import inv_tril, logdet_tril, mm, mT, mv
from svae.expfam import ConditionalMoments, Gaussian
from svae.messages import GaussianChain, GaussianSmoothed, mixture


class Expected(NamedTuple):
    """E_q(z)q(theta) log p(x_t | u_t) = log N(x_t; M u, sqrt sqrt') - u'E u / 2 - constant, for each step."""

    M: Float[Array, "T D U"]
    sqrt: Float[Array, "T D D"]
    E: Float[Array, "T U U"]
    constant: Float[Array, " T"]


class Joint(NamedTuple):
    """Mean and square root of the covariance of (x_t, u_t): x = mean_x + root_x e, u = mean_u + root_u e."""

    mean_x: Float[Array, "T D"]
    mean_u: Float[Array, "T U"]
    root_x: Float[Array, "T D N"]
    root_u: Float[Array, "T U N"]


def expect(moments: ConditionalMoments, T: int) -> Expected:
    """One conditional, the same at every step."""
    constant = (moments.logdet - 2 * logdet_tril(moments.L)) / 2
    return jax.tree.map(
        lambda a: jnp.broadcast_to(a, (T, *a.shape)), Expected(moments.M, moments.L, moments.E, constant)
    )


class Residuals(NamedTuple):
    """The quadratic form of every conditional in r = x - c u and u, with c the mean of all M_k and D_k = M_k - c:

    (x - M_k u)' P_k (x - M_k u) + u'E_k u = r'P_k r - 2 r'PD_k u + u'DPD_k u.
    About c a product with the statistics of (r, u) is off by 1e-7 (D_k u / sd)^2 nats; about 0 it has no digits left.
    """

    centre: Float[Array, "D U"]
    P: Float[Array, "K D D"]  # precision
    PD: Float[Array, "K D U"]
    DPD: Float[Array, "K U U"]
    logdet: Float[Array, "K"]  # E log |Sigma_k|


def residuals(moments: ConditionalMoments) -> Residuals:
    """Made once, for all sweeps of mean field."""
    R = inv_tril(moments.L)  # R'R = precision of each state
    # The centre is a constant: what is formed about it does not depend on it, so neither do derivatives.
    centre = lax.stop_gradient(jnp.mean(moments.M, 0))
    RD = mm(R, moments.M - centre[None])
    return Residuals(centre, mm(mT(R), R), mm(mT(R), RD), mm(mT(RD), RD) + moments.E, moments.logdet)


def mix(about: Residuals, weights: Float[Array, "T K"]) -> Expected:
    """Mean field mixture over K conditionals: precisions add; E keeps their spread about the mixture's own M."""
    K, D, _ = about.P.shape
    table = jnp.concatenate([a.reshape(K, -1) for a in (about.P, about.PD, about.DPD)], -1)
    blend = jax.vmap(lambda row: mixture.blend(row, D))(mm(weights, table))
    constant = mv(weights, about.logdet) / 2 + blend.log_size
    return Expected(about.centre[None] + blend.M, blend.sqrt, blend.E, constant)


def _form(about: Residuals) -> Float[Array, "K N N"]:
    """The quadratic form of every conditional in (r, u)."""
    return jnp.block([[about.P, -about.PD], [-mT(about.PD), about.DPD]])


def _log_prob(quadratic: Float[Array, "T K"], about: Residuals) -> Float[Array, "T K"]:
    """Log densities, less their maximum: q(z) and its KL do not see a constant, digits do."""
    log_prob = -(quadratic + about.logdet[None] + about.P.shape[-1] * jnp.log(2 * jnp.pi)) / 2
    return log_prob - jnp.max(log_prob, -1, keepdims=True)


def log_prob_by_state(about: Residuals, joint: Joint) -> Float[Array, "T K"]:
    """E_q(x)q(theta) log p(x_t | u_t, z_t = k), less its maximum."""
    u = jnp.concatenate([joint.root_u, joint.mean_u[..., None]], -1)
    x = jnp.concatenate([joint.root_x, joint.mean_x[..., None]], -1)
    r = x - jnp.einsum("du,tun->tdn", about.centre, u, precision="highest")
    v = jnp.concatenate([r, u], -2)
    S, form = mm(v, mT(v)), _form(about)
    return _log_prob(mm(S.reshape(len(S), form[0].size), form.reshape(len(form), -1).T), about)


def log_prob_of_steps(about: Residuals, q: GaussianSmoothed) -> Float[Array, "steps K"]:
    """`log_prob_by_state` of every x_t given u = (x_t-1, 1)."""
    return _log_prob(mixture.quadratic(_form(about), about.centre, *_steps(q)), about)


def log_prob_of_driven(about: Residuals, q: GaussianSmoothed, inputs: Float[Array, "N n"]) -> Float[Array, "N K"]:
    """The same given u = (x_t-1, inputs, 1)."""
    return log_prob_by_state(about, joint_of_steps(q, inputs))


def log_prob_of_bent(
    about: Residuals, q: GaussianSmoothed, inputs: Float[Array, "N n"] | None, bend: Float[Array, "N D D+1"]
) -> Float[Array, "N K"]:
    """The same of x_t less bend (x_t-1, 1)."""
    pair = joint_of_steps(q, jnp.zeros((len(bend), 0), bend.dtype) if inputs is None else inputs)
    slope, offset = bend[..., :-1], bend[..., -1]
    D = offset.shape[-1]
    mean = pair.mean_x - mv(slope, pair.mean_u[:, :D]) - offset
    return log_prob_by_state(about, pair._replace(mean_x=mean, root_x=pair.root_x - mm(slope, pair.root_u[:, :D])))


def joint_of_steps(q: GaussianSmoothed, inputs: Float[Array, "N n"]) -> Joint:
    """The `Joint` of x_t and (x_t-1, inputs, 1), for every step of a chain after the first."""
    mean, before, sqrt, gain, back = _steps(q)
    known = jnp.concatenate([inputs, jnp.ones_like(before[:, :1])], -1)
    roots = jnp.concatenate([mm(gain, sqrt), back], -1)
    none = jnp.zeros((*known.shape, roots.shape[-1]), roots.dtype)
    return Joint(
        mean,
        jnp.concatenate([before, known], -1),
        jnp.concatenate([sqrt, jnp.zeros_like(back)], -1),
        jnp.concatenate([roots, none], -2),
    )


def driven(expected: Expected, inputs: Float[Array, "N n"]) -> Expected:
    """A conditional on (x_t-1, inputs, 1) with its inputs known: one on (x_t-1, 1), step by step."""
    N, D = len(inputs), expected.M.shape[1]
    known = jnp.concatenate([inputs, jnp.ones((N, 1), inputs.dtype)], -1)[..., None]
    of_x = jnp.broadcast_to(jnp.eye(D, D + 1, dtype=inputs.dtype), (N, D, D + 1))
    map_to = jnp.concatenate([of_x, jnp.pad(known, ((0, 0), (0, 0), (D, 0)))], -2)  # (x, inputs, 1) from (x, 1)
    every = jax.tree.map(lambda a: jnp.broadcast_to(a, (N, *a.shape[1:])), expected)
    return Expected(mm(every.M, map_to), every.sqrt, mm(mT(map_to), mm(every.E, map_to)), every.constant)


def expected_penalty(expected: Expected, joint: Joint) -> Float[Array, " T"]:
    """E u'E u / 2 + constant: what the normalised conditional leaves out."""
    u = jnp.concatenate([joint.root_u, joint.mean_u[..., None]], -1)
    return jnp.sum(expected.E * mm(u, mT(u)), (-2, -1)) / 2 + expected.constant


# --- independent steps: u = 1 -------------------------------------------------------------------------------------


def independent(expected: Expected, potentials: Gaussian) -> GaussianSmoothed:
    """q(x_t) proportional to N(x_t; M, sqrt sqrt') psi_t(x_t), each step on its own, in the form of a chain."""
    T, D, _ = expected.M.shape

    def one(mean, sqrt, J, h):
        none = jnp.zeros((0, D, D), mean.dtype)
        return messages.gaussian.smooth(GaussianChain(mean, sqrt, none, none[..., 0], none, J[None], h[None]))

    q = jax.vmap(one)(expected.M[..., 0], expected.sqrt, potentials.J, potentials.h)
    mean, sqrt = q.mean[:, 0], q.sqrt[:, 0]
    gain = jnp.zeros((T - 1, D, D), mean.dtype)
    return GaussianSmoothed(mean, sqrt, gain, sqrt[:-1], q.log_z[:, 0], q.kl[:, 0])


def joint_with_one(q: GaussianSmoothed) -> Joint:
    T, D = q.mean.shape
    return Joint(q.mean, jnp.ones((T, 1), q.mean.dtype), q.sqrt, jnp.zeros((T, 1, D), q.mean.dtype))


# --- chains: u = (x_{t-1}, 1) -------------------------------------------------------------------------------------


def chain(first: Expected, dynamics: Expected, potentials: Gaussian, mask: Bool[Array, " T"]) -> GaussianChain:
    """A normalised LDS plus node potentials; a transition into padding is replaced by a harmless one."""
    D = first.M.shape[1]
    real = mask[1:, None, None]
    W = jnp.where(real, dynamics.M, 0)
    E = jnp.where(real, dynamics.E, 0)
    Q_sqrt = jnp.where(real, dynamics.sqrt, jnp.eye(D, dtype=W.dtype)[None])
    J = potentials.J.at[:-1].add(E[:, :D, :D])
    h = potentials.h.at[:-1].add(-E[:, :D, D])
    return GaussianChain(first.M[0, :, 0], first.sqrt[0], W[:, :, :D], W[:, :, D], Q_sqrt, J, h)


def chain_kl(q: GaussianSmoothed, first: Expected, penalty: Float[Array, " N"], mask: Bool[Array, " T"]):
    """E log q(x) - E log p(x | z, theta), step by step (padding is cut by the caller); `penalty` is of steps 2 to T."""
    start = expected_penalty(first, joint_with_one(jax.tree.map(lambda a: a[:1], q)))
    return q.kl + jnp.concatenate([start, jnp.where(mask[1:], penalty, 0)])


def steps_penalty(dynamics: Expected, q: GaussianSmoothed) -> Float[Array, " N"]:
    """`expected_penalty` of every step, each with a conditional of its own; it sees marginals and no pairs of steps."""
    D, root, E = q.mean.shape[1], mT(q.sqrt[:-1]), dynamics.E
    u = jnp.concatenate([q.mean, jnp.ones_like(q.mean[:, :1])], -1)[:-1]
    form = jnp.sum(root * mm(root, E[..., :D, :D]), (-2, -1)) + jnp.sum(u * mv(E, u), -1)
    return form / 2 + dynamics.constant


def shared_penalty(moments: ConditionalMoments, q: GaussianSmoothed) -> Float[Array, " N"]:
    """The same of one conditional for all steps."""
    roots = jnp.pad(mT(q.sqrt[:-1]), ((0, 0), (0, 0), (0, 1)))
    means = jnp.pad(q.mean[:-1, None], ((0, 0), (0, 0), (0, 1)), constant_values=1)
    form = _shared_form(moments.E, jnp.concatenate([roots, means], 1))
    return form / 2 + (moments.logdet - 2 * logdet_tril(moments.L)) / 2


@jax.custom_jvp
def _shared_form(E: Float[Array, "U U"], R: Float[Array, "N M U"]) -> Float[Array, " N"]:
    """The sum of r'E r over the rows of each R, E symmetric: its derivative in R is the product that its value has."""
    return jnp.sum(R * mm(R, E), (-2, -1))


@_shared_form.defjvp
def _(primals, tangents):
    (E, R), (dE, dR) = primals, tangents
    RE = mm(R, E)
    return jnp.sum(R * RE, (-2, -1)), jnp.sum(R * mm(R, dE), (-2, -1)) + 2 * jnp.sum(dR * RE, (-2, -1))


def _steps(q: GaussianSmoothed) -> tuple[Array, ...]:
    """x_t+1 and x_t of a chain, as `mixture.quadratic` takes them."""
    return q.mean[1:], q.mean[:-1], q.sqrt[1:], q.gain, q.back_sqrt
