"""The program as its entry point starts it, with a scripted model that takes its time: `python -m tests.cli.program …`.

FABULA_TEST_READER=1: the model is the reader that copies what it is given.
"""

import os
import sys

import fabula.models
from fabula.cli import main
from fabula.models import Scripted
from tests.read.models import Copyist

if __name__ == "__main__":
    delay = float(os.environ["FABULA_TEST_DELAY"])
    kind = Copyist if os.environ.get("FABULA_TEST_READER") else Scripted
    fabula.models.open_model = lambda *_, **__: kind(delay=delay)
    sys.exit(main())
