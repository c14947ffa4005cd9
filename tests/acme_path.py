"""Make the package of `sabir new-plugin` importable in commands, as pytest's `pythonpath` does in tests.

Import it before modules that use `sabir_acme`.
"""

import sys
from pathlib import Path

TEMPLATE = Path(__file__).parents[1] / "plugins" / "cli" / "src" / "sabir_cli" / "template"
for _folder in ("src", "tests"):
    if str(TEMPLATE / _folder) not in sys.path:
        sys.path.insert(0, str(TEMPLATE / _folder))
