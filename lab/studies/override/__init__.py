"""Override studies: the few heads that decide, searched and proved, resumable and as tables."""
