"""Write docs/cli.md from the program itself (`make docs`). With a path: write it there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main(target: Path) -> None:
    """Ask Typer's own page maker, so that no word of the page is written twice."""
    command = [sys.executable, "-m", "typer", "fabula.cli", "utils", "docs", "--name", "fabula", "--title", "Every command"]
    page = subprocess.run(command, check=True, capture_output=True, text=True, encoding="utf-8").stdout
    target.write_text("<!-- Made by `make docs`; do not edit. -->\n\n" + page.strip() + "\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "cli.md")
