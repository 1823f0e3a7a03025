"""One very long chain shared out over devices along time, through the associative forms.

Each device has a piece of the steps. It sums its piece up in one element (a few D x D or K x K matrices), all devices
see all of these, and each folds those before its piece into what the past says of its first step. With that as prior a
piece is a chain of its own. Backward the same: a linear recursion is an affine map of what arrives from the next piece.
Smoothed steps stay on the devices of `mesh` that computed them. Values only: nothing here is to be differentiated.
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P
from jaxtyping import Array, Float

from svae._linalg import mm, mv, tria
from svae.messages.algebra.compensated import compensated_sum
from svae.messages.algebra.prefix import prefixes
from svae.messages.algebra.recurrence import sandwich
from svae.messages.gaussian import chain as gaussian
from svae.messages.gaussian import parallel as gaussian_parallel
from svae.messages.gaussian.chain import GaussianChain, GaussianSmoothed, Moments
from svae.messages.hmm import chain as hmm
from svae.messages.hmm import parallel as hmm_parallel
from svae.messages.hmm import varying
from svae.messages.hmm.chain import HMMChain, HMMSmoothed

AXIS = "time"


@functools.partial(jax.jit, static_argnums=1)
def gaussian_smooth(chain: GaussianChain, mesh: Mesh) -> GaussianSmoothed:
    """`gaussian.smooth` of one chain, shared out along time."""
    chain = gaussian.every_step(chain)
    T, D = chain.h.shape
    more = -T % mesh.size
    I = jnp.eye(D, dtype=chain.h.dtype)[None]
    ahead = jnp.zeros_like(chain.A, shape=(more + 1, D, D)), jnp.zeros_like(chain.b, shape=(more + 1, D))
    pieces = GaussianChain(
        chain.mean0,
        chain.sqrt0,
        *map(_joined, (chain.A, chain.b), ahead),  # steps that nobody sees follow the last
        _joined(chain.Q_sqrt, jnp.broadcast_to(I, (more + 1, D, D))),
        _joined(chain.J, jnp.zeros_like(chain.J, shape=(more, D, D))),
        _joined(chain.h, jnp.zeros_like(chain.h, shape=(more, D))),
    )
    q = _over(mesh, _gaussian_piece, GaussianChain(P(), P(), *[P(AXIS)] * 5), P(AXIS))(pieces)
    return GaussianSmoothed(q.mean[:T], q.sqrt[:T], q.gain[: T - 1], q.back_sqrt[: T - 1], q.log_z[:T], q.kl[:T])


@functools.partial(jax.jit, static_argnums=1)
def hmm_smooth(chain: HMMChain, mesh: Mesh) -> HMMSmoothed:
    """`hmm.smooth` of one chain with one transition matrix, shared out along time."""
    if not hmm.steady(chain):
        raise ValueError("a hidden chain shared out along time has one transition matrix, log_trans KxK")
    chain = hmm.stacked(chain)
    T, K = chain.node.shape
    more = -T % mesh.size
    node = _joined(chain.node, jnp.zeros_like(chain.node, shape=(more, K)))
    pieces = chain._replace(node=node, mask=_joined(chain.mask, jnp.zeros((more,), bool)))
    spec = P(AXIS)
    q = _over(mesh, _hmm_piece, HMMChain(P(), P(), spec, spec), HMMSmoothed(spec, P(), spec, spec))(pieces)
    return HMMSmoothed(q.states[:T], q.transitions, q.log_z[:T], q.kl[:T])


def _joined(x, more):
    return jnp.concatenate([x, more])


def _over(mesh, function, takes, gives):
    renamed = Mesh(mesh.devices.reshape(-1), (AXIS,))
    return jax.shard_map(function, mesh=renamed, in_specs=(takes,), out_specs=gives, check_vma=False)


# --- what the devices tell each other -----------------------------------------------------------------------------


def _number():
    return lax.axis_index(AXIS)


def _fold(step, start, elements):
    """start, step(start, e_1), step(step(start, e_1), e_2), ...: the values before each element."""
    following = lambda x, element: (step(x, element), x)  # noqa: E731
    return lax.scan(following, start, elements)[1]


def _mine(stack):
    """This device's entry of a stack with one entry a device."""
    return jax.tree.map(lambda x: x[_number()], stack)


def _arriving(apply, F, c, start):
    """x at the next piece's first step, where x = start behind the last piece and a piece makes it apply(F, x) + c."""
    F, c, start = lax.all_gather((F, c, start), AXIS)
    step = lambda x, element: apply(element[0], x) + element[1]  # noqa: E731
    before = _fold(step, start[-1], (jnp.flip(F, 0), jnp.flip(c, 0)))
    return _mine(jnp.flip(before, 0))


def _recursion(apply, F, c):
    """x_t = apply(F_t-1, x_t-1) + c_t backward in time, where c_0 counts on the last device only."""

    def combine(first, then):
        return mm(then[0], first[0]), apply(then[0], first[1]) + then[1]

    products, sums = lax.associative_scan(combine, (F, c[1:]))
    x = _arriving(apply, products[-1], sums[-1], c[0])
    return jnp.concatenate([x[None], apply(products, jnp.broadcast_to(x, sums.shape)) + sums])


_vectors = functools.partial(_recursion, mv)
_matrices = functools.partial(_recursion, sandwich)


# --- the Gaussian chain -------------------------------------------------------------------------------------------


def _gaussian_piece(piece: GaussianChain) -> GaussianSmoothed:
    """A piece of L steps with its L transitions, the last of them into the next piece."""
    nothing = lambda x: jnp.concatenate([x, jnp.zeros_like(x[:1])])  # noqa: E731
    chain = piece._replace(J=nothing(piece.J), h=nothing(piece.h))  # the next piece's first step, unseen
    past = _gaussian_past(chain)

    def predict(_, found):  # the second time, what long products have lost to rounding is regained
        prior, _ = found
        predicted = gaussian_parallel._predicted(chain._replace(mean0=prior.mean, sqrt0=prior.sqrt))
        return _handed_on(predicted, past), predicted

    empty = Moments(jnp.zeros_like(chain.h), jnp.zeros_like(chain.J))
    _, predicted = lax.fori_loop(0, 2, predict, (past, empty))
    q = gaussian.smoothed(chain, predicted, _vectors, _matrices)
    return GaussianSmoothed(q.mean[:-1], q.sqrt[:-1], q.gain, q.back_sqrt, q.log_z[:-1], q.kl[:-1])


def _gaussian_past(chain: GaussianChain) -> Moments:
    """The predicted moments of this piece's first step."""
    first = Moments(chain.mean0, tria(chain.sqrt0))
    begun, plain = gaussian_parallel._elements(chain, first), gaussian_parallel.steps(chain)
    elements = jax.tree.map(lambda a, b: jnp.where(_number() == 0, a, b), begun, plain)
    total = jax.tree.map(lambda x: x[-1], prefixes(gaussian_parallel._combine, elements))
    totals = lax.all_gather(total, AXIS)
    combine = lambda a, b: _unstacked(gaussian_parallel._combine, a, b)  # noqa: E731
    start = jax.tree.map(lambda x: x[0], totals)
    until = _fold(combine, start, jax.tree.map(lambda x: x[1:], totals))  # totals 0, 0..1, ..., 0..n-2
    before = jax.tree.map(lambda x, xs: jnp.concatenate([x[None], xs]), first, Moments(until.b, until.U))
    return _mine(before)


def _unstacked(combine, a, b):
    """`combine` takes stacks."""
    one = combine(*(jax.tree.map(lambda x: x[None], tree) for tree in (a, b)))
    return jax.tree.map(lambda x: x[0], one)


def _handed_on(predicted: Moments, past: Moments) -> Moments:
    """The prior of this piece as the piece before predicts it; the first keeps its own."""
    n = lax.axis_size(AXIS)
    last = jax.tree.map(lambda x: x[-1], predicted)
    got = lax.ppermute(last, AXIS, [(i, i + 1) for i in range(n - 1)])
    return jax.tree.map(lambda a, b: jnp.where(_number() == 0, a, b), past, got)


# --- the hidden Markov chain --------------------------------------------------------------------------------------


def _hmm_piece(piece: HMMChain) -> HMMSmoothed:
    centred = hmm.centre(piece)
    chain = centred.chain._replace(log_init=_hmm_past(centred.chain))
    log_states = hmm_parallel.log_states(chain)
    increments = varying.increments(chain, log_states)
    n = lax.axis_size(AXIS)
    ahead = lax.ppermute(piece.mask[:1], AXIS, [(i + 1, i) for i in range(n - 1)])  # False behind the last piece
    mask = jnp.concatenate([piece.mask, ahead])
    longer = chain._replace(mask=mask)
    kernels = varying.kernels(longer, jnp.concatenate([log_states, log_states[-1:]]))
    last = jnp.zeros((len(mask), log_states.shape[1]), log_states.dtype).at[0].set(jnp.exp(log_states[-1]))
    states = jnp.flip(_vectors(jnp.flip(kernels, 0), last), 0)
    pairs = jnp.where(mask[1:, None, None], kernels * states[1:, None, :], 0)
    transitions = lax.psum(compensated_sum(pairs), AXIS)
    states = states[:-1]
    return HMMSmoothed(states, transitions, increments + centred.maximum, hmm.kl(centred, states, increments))


def _hmm_past(chain: HMMChain) -> Float[Array, " K"]:
    """log p(z of this piece's first step | the pieces before); of the first piece, log_init as it is."""
    elements = jnp.where(_number() == 0, hmm_parallel.elements(chain), hmm_parallel.steps(chain))
    total = prefixes(functools.partial(hmm_parallel.scaled, hmm.logsumexp), elements)[-1]
    totals = lax.all_gather(total, AXIS)
    combine = lambda row, M: _normalized(hmm.propagate(row, M))  # noqa: E731
    until = _fold(combine, _normalized(totals[0, 0]), totals[1:])  # filtered at the end of piece 0, 1, ..., n-2
    filtered = _mine(jnp.concatenate([until[:1], until]))
    predicted = jnp.where(chain.mask[0], hmm.propagate(filtered, chain.log_trans[0]), filtered)
    return jnp.where(_number() == 0, chain.log_init, predicted)


def _normalized(row):
    return row - hmm.finite(hmm.logsumexp(row, -1))
