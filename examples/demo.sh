#!/usr/bin/env bash
# The first ten minutes with Fabula: a mystery of about 1,000 words on the embedded model, shown as it is written, exported to
# Markdown and EPUB, and then the memories, the plan and the prompt behind its last passage. All of it lands in demo/.
set -euo pipefail
mkdir -p demo
export FABULA_LIBRARY=demo/fabula.db

say() { printf '\n\033[1m$ %s\033[0m\n\n' "$*"; }

premise="On a stormy night Tomas Orre, keeper of the Gull Rock lighthouse, vanishes. Inspector Vale finds only his broken watch, stopped at nine."
say fabula write "\"$premise\"" --genre mystery --words 1000 --auto --out demo/story.md --out demo/story.epub
fabula write "$premise" --genre mystery --words 1000 --language en --auto \
  --cast "Inspector Vale: a patient investigator from the mainland who trusts no one" \
  --cast "Mira Orre: the keeper's daughter, who hides a letter from him" \
  --cast "Pask: the ferryman, who lies about the tide" \
  --out demo/story.md --out demo/story.epub

run=$(fabula runs list --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["runs"][0]["run"])')
say fabula runs trace "$run"
fabula runs trace "$run"
printf '\nThe story is in demo/story.md and demo/story.epub. Go on with it: FABULA_LIBRARY=demo/fabula.db fabula runs show %s\n' "$run"
