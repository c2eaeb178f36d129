#!/bin/sh
# Check before a merge whether the new model is worse than the old one, that is, closer to stereotypes.
#
#   sh gate.sh OLD NEW [TEST ...]      for example: sh gate.sh hf:NAME hf:./tuned 'weat*'
#
# OLD and NEW are models or run folders. The default tests are those of a run folder, or the collection `gate`. biassay caches responses
# (BIASSAY_CACHE), so the old model is queried once. Exit codes: 0 passed, 1 measurement failed, 2 usage error, 3 gate failed.
# The verdicts are in gate.xml (JUnit) and gate.md (Markdown).
set -eu
if [ $# -lt 2 ]; then
  echo "usage: sh gate.sh OLD NEW [TEST ...]" >&2
  exit 2
fi
old=$1
new=$2
shift 2
if [ $# -gt 0 ]; then
  tests=$(IFS=,; echo "$*")
  set -- --tests "$tests"
fi
biassay compare "$old" "$new" --fail-if worse --junit gate.xml --markdown gate.md "$@"
