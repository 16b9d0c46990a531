"""The program as its entry point starts it, with a scripted model that takes its time: `python -m tests.cli.program …`."""

import os
import sys

import fabula.models
from fabula.cli import main
from fabula.models import Scripted

if __name__ == "__main__":
    delay = float(os.environ["FABULA_TEST_DELAY"])
    fabula.models.open_model = lambda *_, **__: Scripted(delay=delay)
    sys.exit(main())
