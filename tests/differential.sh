#!/usr/bin/env bash
# Random programs from the independent golden model, run by both machines.
#
# usage: tests/differential.sh COUNT [SEED]      PLENA names the command (default: the release build)
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
count=${1:?usage: tests/differential.sh COUNT [SEED]}
seed=${2:-$(date +%s)}
plena=${PLENA:-$root/build/release/plena/cli/plena}
oracle=${PLENA_SHARED:-$root/../shared}/oracle
python=${PYTHON:-/usr/bin/python3}

if [ ! -d "$oracle" ]; then
  echo "no golden model in $oracle: set PLENA_SHARED"
  [ -z "${PLENA_REQUIRE_SHARED:-}" ] && exit 77  # ctest's skip
  exit 1
fi

out=$(mktemp -d)
echo "seed $seed, $count programs, in $out"
(cd "$oracle" && PYTHONDONTWRITEBYTECODE=1 "$python" -m plena_oracle fuzz --seed "$seed" --count "$count" --out "$out")
"$plena" test --quiet "$out"
rm -rf "$out"
