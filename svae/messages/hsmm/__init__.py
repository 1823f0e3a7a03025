"""Chains of bouts: how long a bout lasts is a table (`durations`) or a number of geometric phases (`phases`)."""

from svae.messages.hsmm.durations import ahead, filter, log_normalizer, sample, smooth, viterbi

__all__ = ["ahead", "filter", "log_normalizer", "sample", "smooth", "viterbi"]
