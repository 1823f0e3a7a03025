"""Trunks: sizes, isometries, and equality with the plain formula."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from svae import nets
from svae.nets.images import conv_decoder, conv_head, conv_trunk, enlarge, pyramid
from svae.nets.temporal import recur, recurrent_trunk, temporal_trunk
from svae.nets.trunks import mlp, mlp_trunk

KEY = jax.random.key(0, impl="rbg")  # compiles quickly


@pytest.mark.parametrize(("P", "D"), [(1, 1), (1, 4), (4, 1), (7, 3), (3, 7), (5, 5)])
def test_partial_isometry(x64, P, D):
    W = nets.partial_isometry(P, D, key=KEY)
    gram = W.T @ W if P >= D else W @ W.T
    np.testing.assert_allclose(gram, np.eye(min(P, D)), atol=1e-13)


def test_mlp_is_its_formula(x64):
    network, x = mlp(4, (5, 3), jnp.tanh, key=KEY), jnp.arange(4.0)
    first, second = network.layers
    expected = np.tanh(second.weight @ np.tanh(first.weight @ x + first.bias) + second.bias)
    np.testing.assert_allclose(network(x), expected, rtol=1e-13)
    np.testing.assert_array_equal(mlp(4, (), jnp.tanh, key=KEY)(x), x)


def test_mlp_keeps_the_scale_of_its_inputs(x64):
    network = mlp(200, (200, 200, 200), lambda x: x, key=KEY)
    features = jax.vmap(network)(jax.random.normal(jax.random.key(1, impl="rbg"), (500, 200)))
    assert 0.7 < features.std() < 1.5


@pytest.mark.parametrize(("H", "W"), [(8, 8), (9, 8), (15, 22), (30, 30)])
@pytest.mark.parametrize("channels", [(), (3,)])
def test_images_of_any_size_go_down_and_come_back(H, W, channels):
    event = (H, W, *channels)

    def there_and_back():
        trunk = conv_trunk(event, 2, (4, 6, 5), jnp.tanh, key=KEY)
        decoder = conv_decoder(3, event, (4, 6, 5), jnp.tanh, key=KEY)
        head = conv_head(decoder.size, event, scale=1.0, key=KEY)
        return trunk(jnp.ones((2, *event, 2)), jnp.ones(2, bool)), head(decoder(jnp.ones(3)))

    features, image = jax.eval_shape(there_and_back)
    height, width = pyramid(H, W, 3)[-1]
    assert features.shape == (2, 5 * height * width) and image.shape == event


def test_enlarge_repeats_every_pixel(x64):
    x = jnp.arange(6.0).reshape(1, 2, 3)
    np.testing.assert_array_equal(enlarge(x, (4, 5)), np.kron(x, np.ones((1, 2, 2)))[:, :4, :5])


def test_convolution_over_time_is_its_formula(x64):
    """One layer, without padding: x_t = tanh(Σ_s W_s f_{t+s} + b) of the frame features f, zero outside."""
    trunk, inputs = temporal_trunk((2,), 1, (3,), jnp.tanh, key=KEY), jax.random.normal(KEY, (6, 2, 1))
    layer, f = trunk.layers[0], np.asarray(jax.vmap(trunk.frame)(inputs))
    padded = np.concatenate([np.zeros((2, 3)), f, np.zeros((2, 3))])
    expected = [
        np.tanh(sum(np.asarray(layer.weight)[:, :, s] @ padded[t + s] for s in range(5)) + layer.bias[:, 0])
        for t in range(6)
    ]
    np.testing.assert_allclose(trunk(inputs, jnp.ones(6, bool)), expected, rtol=1e-12)


def test_recurrence_is_a_loop_in_either_direction(x64):
    trunk = recurrent_trunk((2,), 1, (4,), jnp.tanh, key=KEY)
    x, mask = jax.random.normal(KEY, (5, 4)), jnp.arange(5) < 3
    for reverse, order in ((False, [0, 1, 2]), (True, [2, 1, 0])):
        state, states = jnp.zeros(4), recur(trunk.forward, x, mask, reverse=reverse)
        for t in order:
            state = trunk.forward(x[t], state)
            np.testing.assert_allclose(states[t], state, rtol=1e-12)


@pytest.mark.parametrize("build", [mlp_trunk, temporal_trunk, recurrent_trunk])
@pytest.mark.parametrize("event", [(), (3,), (2, 3)])
def test_one_frame_is_enough(build, event):
    trunk = build(event, 2, (4,), jnp.tanh, key=KEY)
    features = jax.eval_shape(trunk, jnp.ones((1, *event, 2)), jnp.ones(1, bool))
    assert features.shape == (1, trunk.size)


def test_frames_go_through_in_one_matmul_per_layer():
    trunk = mlp_trunk((6,), 1, (5, 4), jnp.tanh, key=KEY)
    program = str(jax.make_jaxpr(lambda y: trunk(y, jnp.ones(100, bool)))(jnp.ones((100, 6, 1))))
    assert program.count("dot_general") == 2 and "scan" not in program
