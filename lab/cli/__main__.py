"""``python -m lab.cli`` is the ``lab`` command."""

from lab.cli.app import main

main()
