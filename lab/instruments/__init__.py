"""What is measured: a Lens and an Example go in, arrays come out. Statistics live here too."""
