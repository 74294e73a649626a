"""Many examples: recipe, store, resume, progress and provenance."""
