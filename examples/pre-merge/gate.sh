#!/bin/sh
# Before a merge: is the new model worse than the old one?
#
#   sh gate.sh OLD NEW TEST ...      for example: sh gate.sh hf:NAME hf:./tuned 'weat*'
#
# The old model is measured once, into runs/old, which may be kept between builds. Exit code: 0 the gate is passed,
# 3 it fails. gate.xml and gate.md have the verdicts for what runs the build.
set -eu
old=$1
new=$2
shift 2
biassay tests power "$@" --gate
[ -d runs/old ] || biassay run "$old" --tests "$@" --out runs/old --quiet
biassay compare runs/old "$new" --fail-if worse --junit gate.xml --markdown gate.md
