"""The section on override heads: its tables, figures and sentences."""
