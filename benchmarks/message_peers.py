"""The contestants of each task: functions of nothing that do the whole task once, ours and those of peers.

A peer that is not installed is left out, with a sentence.
"""

import jax
import jax.numpy as jnp
import numpy as np
from message_problems import axes, observations, sequence

from svae.messages import HMMChain

KEY = jax.random.key(0)


def _jitted(f, *operands):
    run = jax.jit(f)
    return lambda: run(*operands)


# --- ours ---------------------------------------------------------------------------------------------------------


def gaussian_ours(form, task: str, chain):
    """One task of a form of messages.gaussian on a batch."""

    def every(f):
        return jax.vmap(f, (axes(chain),))

    def value_and_gradient(chain):
        q, pull = jax.vjp(every(form.smooth), chain)
        return q, pull(q)

    def draw(chain):
        return every(lambda c: form.sample(form.smooth(c), key=KEY))(chain)

    tasks = {
        "filter": every(form.filter),
        "smooth": every(form.smooth),
        "smooth, value and gradient": value_and_gradient,
        "sample": draw,
        "log normaliser": every(form.log_normalizer),
        "log normaliser, gradient": jax.grad(lambda c: jnp.sum(every(form.log_normalizer)(c))),
    }
    return _jitted(tasks[task], chain)


def hidden_ours(form, task: str, chain):
    """One task of a form of messages.hmm on a batch whose transitions are shared."""

    def every(f):
        return lambda i, t, node: jax.vmap(lambda n: f(HMMChain(i, t, n, chain.mask)))(node)

    def value_and_gradient(*potentials):
        q, pull = jax.vjp(every(form.smooth), *potentials)
        return q, pull(q)

    tasks = {
        "smooth": every(form.smooth),
        "smooth, value and gradient": value_and_gradient,
        "viterbi": every(form.viterbi),
        "log normaliser": every(form.log_normalizer),
        "log normaliser, gradient": jax.grad(lambda *p: jnp.sum(every(form.log_normalizer)(*p)), (0, 1, 2)),
    }
    return _jitted(tasks[task], *chain[:3])


# --- dynamax ------------------------------------------------------------------------------------------------------


def _dynamax_parameters(c, F):
    from dynamax.linear_gaussian_ssm.inference import make_lgssm_params

    def steps(X):  # one matrix, or the transition into each step; that into the first is not used
        return X[0] if len(X) == 1 else jnp.concatenate([X[:1], X])

    Q = c.Q_sqrt @ jnp.swapaxes(c.Q_sqrt, -1, -2)
    P0 = c.sqrt0 @ c.sqrt0.T
    return make_lgssm_params(c.mean0, P0, steps(c.A), steps(Q), jnp.swapaxes(F, -1, -2), jnp.eye(len(P0)), steps(c.b))


def gaussian_dynamax(task: str, chain, parallel: bool):
    if parallel:
        from dynamax.linear_gaussian_ssm import parallel_inference as form
    else:
        from dynamax.linear_gaussian_ssm import inference as form

    def every(f):
        return jax.vmap(lambda c, F, y: f(_dynamax_parameters(c, F), y), (axes(chain), 0, 0))

    log_z = every(lambda parameters, y: form.lgssm_filter(parameters, y).marginal_loglik)
    tasks = {
        "filter": every(form.lgssm_filter),
        "smooth": every(form.lgssm_smoother),
        "sample": every(lambda parameters, y: form.lgssm_posterior_sample(KEY, parameters, y)),
        "log normaliser": log_z,
        "log normaliser, gradient": jax.grad(lambda *x: jnp.sum(log_z(*x)), (0, 1, 2)),
    }
    return _jitted(tasks[task], chain, *map(jnp.asarray, observations(chain))) if task in tasks else None


def hidden_dynamax(task: str, chain, parallel: bool):
    if parallel:
        from dynamax.hidden_markov_model import parallel_inference as form

        tasks = {"smooth": form.hmm_smoother}
    else:
        from dynamax.hidden_markov_model import inference as form

        tasks = {
            "smooth": form.hmm_smoother,
            "viterbi": form.hmm_posterior_mode,
            "log normaliser": lambda *x: form.hmm_filter(*x).marginal_loglik,
        }
    operands = jnp.exp(chain.log_init), jnp.exp(chain.log_trans), chain.node
    return _jitted(jax.vmap(tasks[task], (None, None, 0)), *operands) if task in tasks else None


# --- peers that take one sequence ------------------------------------------------------------------------------------


def gaussian_statsmodels(task: str, chain):
    """One sequence in float32."""
    from statsmodels.tsa.statespace.kalman_smoother import KalmanSmoother

    if task not in ("filter", "smooth"):
        return None
    c = jax.tree.map(lambda x: np.asarray(x, np.float64), sequence(chain, 0))
    F, y = (x[0] for x in observations(chain))
    D = y.shape[1]

    def last(X):  # one matrix, or one for every step and one more
        X = X if len(X) == 1 else np.concatenate([X, X[-1:]])
        return np.asfortranarray(np.moveaxis(X, 0, -1), dtype=np.float32)

    design, transition = np.asfortranarray(np.moveaxis(np.swapaxes(F, -1, -2), 0, -1)), last(c.A)
    intercept, noise = last(c.b), last(c.Q_sqrt @ np.swapaxes(c.Q_sqrt, -1, -2))

    def run():
        ks = KalmanSmoother(k_endog=D, k_states=D, tolerance=0, dtype=np.float32)
        ks.bind(y)
        ks["design"], ks["transition"], ks["state_intercept"], ks["state_cov"] = design, transition, intercept, noise
        ks["obs_cov"] = ks["selection"] = np.eye(D, dtype=np.float32)
        ks.initialize_known(c.mean0.astype(np.float32), (c.sqrt0 @ c.sqrt0.T).astype(np.float32))
        return ks.smooth().smoothed_state.T if task == "smooth" else ks.filter().filtered_state.T

    return run


def gaussian_pykalman(task: str, chain):
    from pykalman import KalmanFilter

    if task not in ("filter", "smooth"):
        return None
    c = jax.tree.map(lambda x: np.asarray(x, np.float64), sequence(chain, 0))
    F, y = (x[0] for x in observations(chain))
    Q = c.Q_sqrt @ np.swapaxes(c.Q_sqrt, -1, -2)
    A, Q, b = (x[0] if len(x) == 1 else x for x in (c.A, Q, c.b))
    kf = KalmanFilter(A, np.swapaxes(F, -1, -2), Q, np.eye(y.shape[1]), b, None, c.mean0, c.sqrt0 @ c.sqrt0.T)
    return lambda: (kf.smooth if task == "smooth" else kf.filter)(y)[0]


def hidden_hmmlearn(task: str, chain):
    """Its C++ for one sequence: forward, backward and pair counts, or the best path."""
    from hmmlearn import _hmmc

    init, trans, node = (np.asarray(x, np.float64) for x in (*map(jnp.exp, chain[:2]), chain.node[0]))

    def smooth():
        _, forward = _hmmc.forward_log(init, trans, node)
        backward = _hmmc.backward_log(init, trans, node)
        _hmmc.compute_log_xi_sum(forward, trans, backward, node)
        states = forward + backward
        states = np.exp(states - states.max(1, keepdims=True))
        return states / states.sum(1, keepdims=True)

    tasks = {"smooth": smooth, "viterbi": lambda: _hmmc.viterbi(init, trans, node)[1]}
    return tasks.get(task)


# --- do they agree ------------------------------------------------------------------------------------------------


def smoothed(result):
    """Smoothed means or probabilities of the first sequence, whoever found them."""
    for name in ("mean", "states", "smoothed_means", "smoothed_probs"):
        if hasattr(result, name) and not isinstance(result, np.ndarray):
            return np.asarray(getattr(result, name)[0])
    return np.asarray(result)
