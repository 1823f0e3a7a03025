"""Recognition networks: potentials that are proper, silent where nothing was seen, and linear where they should be."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from svae import nets
from svae.nets.recognition import FLOOR, factor, unfactor

NETWORKS = list(nets.RECOGNITION_NETWORKS)
COMBINATIONS = [
    (network, event)
    for event in [(), (6,), (9, 8), (8, 9, 2)]
    for network in NETWORKS
    if network != "conv" or len(event) >= 2
]
T, D = 7, 3
apply = eqx.filter_jit(lambda recognize, y, mask: recognize(jnp.asarray(y), mask))


def quick_key(seed):
    """Weights from the generator that compiles quickly."""
    return jax.random.key(seed, impl="rbg")


def recognition(network, event, *, precision="full", missing=True, activation="tanh"):
    sizes = {"network": network, "hidden": (5,), "precision": precision, "missing": missing}
    return nets.make_recognition(event, D, **sizes, activation=activation, key=quick_key(1))


def frames(event, length=T):
    return np.random.default_rng(0).normal(size=(length, *event))


def everywhere(length=T):
    return jnp.ones(length, bool)


@pytest.mark.parametrize(("precision", "missing"), [("full", True), ("diagonal", False)])
@pytest.mark.parametrize(("network", "event"), COMBINATIONS)
def test_every_network_reads_every_event(x64, network, event, precision, missing):
    def use():
        return recognition(network, event, precision=precision, missing=missing)(jnp.zeros((T, *event)), everywhere())

    potential = jax.eval_shape(use)
    assert potential.J.shape == (T, D, D) and potential.h.shape == (T, D)
    assert potential.J.dtype == potential.h.dtype == jnp.float64


@pytest.mark.parametrize(("network", "precision"), [(name, "full") for name in NETWORKS] + [("residual", "diagonal")])
def test_precision_is_proper_and_starts_moderate(x64, network, precision):
    potential = apply(recognition(network, (9, 8), precision=precision), frames((9, 8)), everywhere())
    J = np.asarray(potential.J)
    np.testing.assert_array_equal(J, J.transpose(0, 2, 1))
    values = np.linalg.eigvalsh(J)
    assert values.min() > 0.5 and values.max() < 2
    assert (np.abs(J * (1 - np.eye(D))).max() > 0) == (precision == "full")


@pytest.mark.parametrize("network", NETWORKS)
def test_nothing_seen_says_exactly_nothing_and_gradients_stay_finite(x64, network):
    y, mask = frames((9, 8)), jnp.arange(T) < 5
    y[2] = np.nan
    y[0, 3:5] = np.nan

    @eqx.filter_jit
    @eqx.filter_grad(has_aux=True)
    def gradient_and_potential(recognize):
        potential = recognize(jnp.asarray(y), mask)
        return jnp.sum(jnp.sin(potential.J)) + jnp.sum(jnp.sin(potential.h)), potential

    gradient, potential = gradient_and_potential(recognition(network, (9, 8)))
    for silent in (2, 5, 6):
        assert not np.any(potential.J[silent]) and not np.any(potential.h[silent])
    assert (np.linalg.eigvalsh(potential.J)[[0, 1, 3, 4]] > 0).all()
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))


@pytest.mark.parametrize("network", NETWORKS)
def test_padding_is_never_read(x64, network):
    """Whatever stands in the padding, NaN and 1e30 included, and however long it is."""
    y, mask = frames((9, 8)), jnp.arange(T) < 4
    recognize = recognition(network, (9, 8))
    expected = apply(recognize, y, mask)
    for value in (np.nan, 1e30, -3.0):
        y[4:] = value
        potential = apply(recognize, y, mask)
        np.testing.assert_array_equal(potential.J, expected.J)
        np.testing.assert_array_equal(potential.h, expected.h)
    short = apply(recognize, y[:4], everywhere(4))
    np.testing.assert_allclose(short.J, expected.J[:4], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(short.h, expected.h[:4], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("network", ["affine", "mlp", "residual", "temporal", "recurrent"])
def test_which_frames_a_frame_reads(x64, network):
    """Temporal networks read both neighbours, the others one frame."""
    recognize = recognition(network, (6,))
    jacobian = jax.jit(jax.jacfwd(lambda y: recognize(y, everywhere()).h))
    influence = np.abs(jacobian(jnp.asarray(frames((6,))))).max(axis=(1, 3)) > 0
    if network in ("temporal", "recurrent"):
        assert influence[3, 2:5].all()
    else:
        np.testing.assert_array_equal(influence, np.eye(T, dtype=bool))


@pytest.mark.parametrize("missing", [True, False])
def test_affine_recognition_is_affine_in_the_data(x64, missing):
    recognize = recognition("affine", (6,), missing=missing)
    y1, y2 = jnp.asarray(frames((6,))), jnp.cos(3 * jnp.asarray(frames((6,))))
    one, two, between = (apply(recognize, y, everywhere()) for y in (y1, y2, 0.3 * y1 + 0.7 * y2))
    np.testing.assert_allclose(between.J, one.J, rtol=1e-13)
    np.testing.assert_allclose(between.h, 0.3 * one.h + 0.7 * two.h, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("network", [name for name in NETWORKS if name != "mlp"])
def test_recognition_inverts_the_linear_map_it_is_given(x64, network):
    """h = J μ with μ near x for y = W x + b: exactly x for affine, to the small correction for the others."""
    rng = np.random.default_rng(3)
    W, b, x = rng.normal(size=(72, D)), rng.normal(size=72), rng.normal(size=(T, D))
    recognize = nets.with_linear_map(recognition(network, (9, 8)), jnp.asarray(W), jnp.asarray(b))
    potential = apply(recognize, (x @ W.T + b).reshape(T, 9, 8), everywhere())
    guess = np.linalg.solve(potential.J, np.asarray(potential.h)[..., None])[..., 0]
    np.testing.assert_allclose(guess, x, atol=1e-10 if network == "affine" else 0.1)


def test_a_missing_entry_stands_at_its_offset(x64):
    y = frames((6,))
    recognize = recognition("affine", (6,), missing=False)
    recognize = nets.with_linear_map(recognize, nets.partial_isometry(6, D, key=quick_key(2)), jnp.arange(6.0))
    filled, y[:, 4] = y.copy(), np.nan
    filled[:, 4] = 4.0
    missing, full = (apply(recognize, v, everywhere()) for v in (y, filled))
    np.testing.assert_allclose(missing.h, full.h, rtol=1e-12)


@pytest.mark.parametrize("precision", nets.PRECISIONS)
def test_precision_can_be_given(x64, precision):
    A = np.random.default_rng(4).normal(size=(D, D))
    J = A @ A.T * 50 + np.eye(D) if precision == "full" else np.diag([0.01, 1.0, 3e5])
    recognize = nets.with_precision(recognition("residual", (6,), precision=precision), jnp.asarray(J))
    given = apply(recognize, frames((6,)), everywhere()).J
    np.testing.assert_allclose(given, np.broadcast_to(J, (T, D, D)), rtol=1e-9, atol=1e-9)


def test_a_singular_precision_is_raised_to_the_floor(x64):
    recognize = nets.with_precision(recognition("residual", (6,)), jnp.zeros((D, D)))
    given = apply(recognize, frames((6,)), everywhere()).J
    np.testing.assert_allclose(given, np.broadcast_to(2 * FLOOR * np.eye(D), (T, D, D)), rtol=1e-6, atol=1e-12)


def test_factor_is_inverted_and_bounded(x64):
    raw = jax.random.normal(quick_key(0), (6,))
    np.testing.assert_allclose(unfactor(factor(raw, 3)), raw, rtol=1e-7)
    assert jnp.isfinite(factor(jnp.full(6, 1e30), 3)).all() and (jnp.abs(factor(jnp.full(6, 1e30), 3)) <= 1e4).all()


@pytest.mark.parametrize("P", [1, 2, 5])
def test_conjugate_potentials_are_the_likelihood(x64, P):
    """log p(y | x) - log p(y | 0) = -x'J x/2 + h'x, frame by frame, with missing entries and with P < D."""
    options = {"network": "affine", "hidden": (), "likelihood": "gaussian", "variance": "learned", "sd": 0.2}
    observe = nets.make_observation((P,), D, **options, key=quick_key(5))
    y = frames((P,))
    y[np.random.default_rng(1).uniform(size=y.shape) < 0.3] = np.nan
    x = jax.random.normal(quick_key(6), (T, D))
    potential = nets.conjugate(observe)(jnp.asarray(y), everywhere())
    quadratic = -0.5 * jnp.einsum("td,tde,te->t", x, potential.J, x) + jnp.einsum("td,td->t", potential.h, x)
    expected = observe.log_prob(x, jnp.asarray(y)) - observe.log_prob(jnp.zeros_like(x), jnp.asarray(y))
    np.testing.assert_allclose(quadratic, expected, rtol=1e-9, atol=1e-10)


def test_affine_recognition_can_be_exact_inference(x64):
    """With the matching map and precision, prior × potential is the posterior that conditioning the joint gives."""
    rng = np.random.default_rng(7)
    W, b, sd, y = rng.normal(size=(5, D)), rng.normal(size=5), 0.4, rng.normal(size=(1, 5))
    J = W.T @ W / sd**2
    recognize = nets.with_linear_map(recognition("affine", (5,), missing=False), jnp.asarray(W), jnp.asarray(b))
    potential = nets.with_precision(recognize, jnp.asarray(J))(jnp.asarray(y), everywhere(1))
    mean = np.linalg.solve(np.eye(D) + potential.J[0], np.asarray(potential.h[0]))
    gain = W.T @ np.linalg.inv(W @ W.T + sd**2 * np.eye(5))
    np.testing.assert_allclose(mean, gain @ (y[0] - b), rtol=1e-9)
    np.testing.assert_allclose(np.linalg.inv(np.eye(D) + potential.J[0]), np.eye(D) - gain @ W, atol=1e-9)


def test_batches_and_jit(x64):
    recognize = recognition("recurrent", (6,))
    y = jnp.stack([jnp.asarray(frames((6,))), 2 * jnp.asarray(frames((6,)))])
    mask = jnp.stack([everywhere(), jnp.arange(T) < 3])
    batch = jax.jit(jax.vmap(recognize))(y, mask)
    np.testing.assert_allclose(batch.h[1], apply(recognize, y[1], mask[1]).h, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("network", ["affine", "residual", "recurrent"])
def test_float32_in_float32_out(network):
    potential = apply(recognition(network, (6,)), jnp.asarray(frames((6,)), jnp.float32), everywhere())
    assert potential.J.dtype == potential.h.dtype == jnp.float32


@pytest.mark.parametrize("scale", [1e12, 1e-12])
@pytest.mark.parametrize("activation", nets.ACTIVATIONS)
def test_extreme_scales_stay_finite_in_float32(scale, activation):
    y = jnp.asarray(scale * frames((6,)), jnp.float32)
    potential = apply(recognition("residual", (6,), activation=activation), y, everywhere())
    assert jnp.isfinite(potential.J).all() and jnp.isfinite(potential.h).all()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"network": "mpl"}, "choose one of affine, conv"),
        ({"precision": "half"}, "diagonal, full"),
        ({"activation": "sin"}, "gelu, relu, tanh"),
        ({"network": "conv"}, "H, W >= 8"),
        ({"network": "temporal", "hidden": ()}, "at least one width"),
    ],
)
def test_mistakes_get_one_sentence(changes, sentence):
    options = {"network": "mlp", "hidden": (4,), "precision": "full", "missing": False, "activation": "tanh"}
    with pytest.raises(ValueError, match=sentence):
        nets.make_recognition((6,), D, **(options | changes), key=quick_key(0))


def test_a_network_without_a_linear_map_says_so():
    with pytest.raises(ValueError, match="residual"):
        nets.with_linear_map(recognition("mlp", (6,)), jnp.zeros((6, D)), jnp.zeros(6))
