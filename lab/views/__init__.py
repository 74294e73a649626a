"""What is seen: the exported report and the figures, made from stored arrays alone."""
