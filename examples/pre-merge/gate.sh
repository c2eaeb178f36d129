#!/bin/sh
# Before a merge: is the new model worse than the old one?
#
#   sh gate.sh OLD NEW TEST ...      for example: sh gate.sh hf:NAME hf:./tuned 'weat*'
#
# OLD and NEW are models or run folders. What models answer is kept between builds (BIASSAY_CACHE), so that the old model is asked
# once. Exit code: 0 the gate is passed, 3 it fails, 1 something could not be measured, 2 wrong usage. gate.xml and gate.md have the
# verdicts for what runs the build.
set -eu
if [ $# -lt 3 ]; then
  echo "usage: sh gate.sh OLD NEW TEST ..." >&2
  exit 2
fi
old=$1
new=$2
shift 2
biassay compare "$old" "$new" --tests "$@" --fail-if worse --junit gate.xml --markdown gate.md
