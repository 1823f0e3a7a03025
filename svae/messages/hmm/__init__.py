"""The hidden Markov chain, by the form that serves it on this backend (`served.TABLE`)."""

from typing import Any

from jaxtyping import Array, Float, Int

from svae.messages import served
from svae.messages.hmm import chain as hmm_chain
from svae.messages.hmm.chain import HMMChain, HMMFiltered, HMMPairs, HMMSmoothed


def _form(chain: HMMChain) -> Any:
    return served.form(served.STEADY if hmm_chain.steady(chain) else served.VARYING, len(chain.log_init))


def filter(chain: HMMChain) -> HMMFiltered:
    """log p(z_t | nodes to t) and the increments of log Z."""
    return _form(chain).filter(chain)


def smooth(chain: HMMChain) -> HMMSmoothed:
    """Marginals, expected pair counts, increments of log Z and of the KL."""
    return _form(chain).smooth(chain)


def smooth_pairs(chain: HMMChain) -> HMMPairs:
    """Marginals of states and of pairs, increments of log Z and of the KL."""
    return served.form(served.VARYING, len(chain.log_init)).smooth_pairs(chain)


def log_normalizer(chain: HMMChain) -> Float[Array, ""]:
    """log Z, the compensated sum of the filter's increments."""
    return _form(chain).log_normalizer(chain)


def sample(chain: HMMChain, *, key) -> Int[Array, "T"]:
    """A draw of z_1..z_T from q; padding repeats the last real state."""
    return _form(chain).sample(chain, key=key)


def viterbi(chain: HMMChain) -> Int[Array, "T"]:
    """The most probable path; padding repeats the last real state."""
    return _form(chain).viterbi(chain)
