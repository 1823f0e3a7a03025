"""Compiled programs are forgotten before their memory maps run out."""

import jax
import jax.numpy as jnp
import pytest

from svae import _program_memory


@pytest.fixture
def double():
    f = jax.jit(lambda x: 2 * x)
    f(jnp.ones(3))
    return f


def limit(monkeypatch, tmp_path, words):
    (tmp_path / "most").write_text(words)
    monkeypatch.setattr(_program_memory, "MOST_MAPS", tmp_path / "most")


def test_programs_stay_while_there_is_room(double, monkeypatch, tmp_path):
    limit(monkeypatch, tmp_path, "1000000000\n")
    _program_memory.make_room()
    assert double._cache_size() == 1


def test_programs_go_when_half_of_the_maps_are_taken_and_come_again(double, monkeypatch, tmp_path):
    limit(monkeypatch, tmp_path, "20\n")
    monkeypatch.setattr(_program_memory, "MAPS", tmp_path / "maps")
    (tmp_path / "maps").write_text("a map\n" * 11)
    _program_memory.make_room()
    assert double._cache_size() == 0
    assert double(jnp.ones(3)).tolist() == [2, 2, 2]


def test_a_system_without_such_a_limit_is_left_alone(double, monkeypatch, tmp_path):
    monkeypatch.setattr(_program_memory, "MOST_MAPS", tmp_path / "no such file")
    _program_memory.make_room()
    assert double._cache_size() == 1
