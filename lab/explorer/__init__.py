"""Explorers: linked views of a study or of examples on a model, live in a notebook."""
