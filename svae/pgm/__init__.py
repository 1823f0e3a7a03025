"""Latent graphical models, one file each; a new one is one more file and one more line here."""

from svae.pgm import gaussian, gmm, hmm, lds, slds, standard
from svae.pgm._base import AbstractPGM, Latents, Posterior

# name -> make(latent_dim, states, *, concentration, stickiness)
PGMS = {
    "vae": standard.make,
    "gaussian": gaussian.make,
    "gmm": gmm.make,
    "hmm": hmm.make,
    "lds": lds.make,
    "slds": slds.make,
}

__all__ = ["PGMS", "AbstractPGM", "Latents", "Posterior"]
