"""The program as its entry point starts it, with a scripted model that takes its time: `python -m tests.cli.program …`.

FABULA_TEST_READER=1: it reads by copying what it is given.
"""

import os
import sys
from dataclasses import replace

import fabula.models
from fabula.cli import main
from fabula.models import SCRIPTED_PROFILE, ModelChoice, Scripted
from tests.cli.author import Author

if __name__ == "__main__":
    delay = float(os.environ["FABULA_TEST_DELAY"])
    kind = Author if os.environ.get("FABULA_TEST_READER") else Scripted

    def opens(choice: ModelChoice, **_: object) -> Scripted:
        prices = {"price_known": True, **choice.profile} if choice.profile else {}
        return kind(delay=delay, profile=replace(SCRIPTED_PROFILE, **prices))

    fabula.models.open_model = opens
    sys.exit(main())
