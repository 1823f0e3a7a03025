"""The fit: from recordings to a fitted model. `loop.fit` is the generator of steps; the rest are its stages."""
