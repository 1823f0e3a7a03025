"""Readers of files, one small module per family of formats; each gives the recordings that a file holds."""
