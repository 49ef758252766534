"""How long `askance --help` and `askance demo` take beside `import openai`, in turn.

python benchmarks/startup.py [--runs N]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from measuring import Contender, in_turn, python, table

IMPORT = 'python -c "import openai"'
WITHOUT = "import sys; sys.modules['aiohttp'] = None; import openai"
"""As where it is installed alone: openai loads aiohttp where that is there, which takes 0.2 s more."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=7, help="how many runs of each")
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as temporary:
        here = Path(temporary)
        contenders = [
            Contender(name=IMPORT, command=[python(), "-c", WITHOUT], folder=here),
            Contender(name="askance --help", command=[python(tool="askance"), "--help"], folder=here),
            Contender(name="askance demo", command=[python(tool="askance"), "demo"], folder=here),
        ]
        print(table(in_turn(contenders, runs=runs), against=IMPORT))


if __name__ == "__main__":
    main()
