#!/bin/sh
# Prints the path of the first of the named interpreters that this project can use: Python 3.11 to
# 3.13 with the venv module. Each name is tried on PATH, then among the versions that pyenv manages.
#
#   sh scripts/find_python.sh python3.13 python3
set -u

usable='
import ensurepip, sys, venv
if not (3, 11) <= sys.version_info[:2] <= (3, 13):
    raise SystemExit(1)
print(sys.executable)
'

for name in "$@"; do
    # A pyenv shim exists for every version but runs only the active ones, hence the second look.
    for candidate in "$name" $(pyenv whence --path "$name" 2>/dev/null); do
        "$candidate" -c "$usable" 2>/dev/null && exit 0
    done
done

echo "Found no usable Python under: $*." >&2
echo "This project needs Python 3.11, 3.12 or 3.13 with venv (Debian: python3-venv); make PYTHON=/path/to/python names one." >&2
exit 1
