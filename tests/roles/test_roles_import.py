"""The room is light: it needs neither torch nor transformers."""

from __future__ import annotations

import subprocess
import sys


def test_importing_the_roles_loads_neither_torch_nor_transformers():
    code = (
        "import lab.roles, sys; "
        "print([m for m in ('torch', 'transformers', 'transformer_lens') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
