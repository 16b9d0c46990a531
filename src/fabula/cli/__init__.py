"""The command line (DESIGN 8): one module a command group, heavy imports inside the commands.

It knows the terminal: arguments, settings, colours, progress, signals, exit codes. It does not know how a story is written, kept or
remembered: what is more than showing and asking lives below, in `fabula.write`, `fabula.runs` and `fabula.memory`.
"""

from fabula.cli._app import app
from fabula.cli._main import main

__all__ = ["app", "main"]
