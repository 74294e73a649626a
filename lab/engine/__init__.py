"""How it is run: loading, trunks and branches, edits, and what is kept of a forward pass."""
