#!/usr/bin/env bash
# The first five minutes with Fabula: a short mystery on the embedded model, exported, and traced.
set -euo pipefail
fabula --help
