#!/bin/sh
# Prints the path of the Python to make .venv of: a 3.12 wherever one is, else a 3.11, else says
# what to install. An argument, if any, is the only candidate, or the only version (3.11).
set -eu

# Prints the real path of interpreter $1 when it runs and is version $2 ("any": one that we support).
match() {
  "$1" -c '
import sys
version = "%d.%d" % sys.version_info[:2]
if version not in (sys.argv[1:] if sys.argv[1] != "any" else ("3.12", "3.11")):
    sys.exit(1)
print(sys.executable)' "$2" 2>/dev/null </dev/null
}

# Every place where version $1 may be, one a line. Shims on PATH follow .python-version.
places() {
  echo "python$1"
  echo python3
  echo python
  for versions in "${PYENV_ROOT:-}/versions" "${HOME:-}/.pyenv/versions"; do
    for place in "$versions/$1"*/bin/python3; do echo "$place"; done
  done
  echo "/opt/homebrew/opt/python@$1/bin/python$1"
  echo "/usr/local/opt/python@$1/bin/python$1"
  if command -v uv >/dev/null 2>&1; then
    uv python find --no-project "$1" 2>/dev/null || true
  fi
}

wanted="3.12 3.11"
case "${1:-}" in
  3.11 | 3.12) wanted="$1" && shift ;;
esac

if [ $# -gt 0 ]; then
  match "$1" any && exit
  echo "$1 is not a Python 3.12 or 3.11 that runs." >&2
  exit 1
fi

for version in $wanted; do
  # A here-document, not a pipe: `exit` in a piped loop would leave only the loop.
  list="$(places "$version")"
  while IFS= read -r place; do
    if match "$place" "$version"; then
      if [ "$wanted $version" = "3.12 3.11 3.11" ]; then
        echo "Using Python 3.11: everything works but the SageMaker upstream, which needs 3.12." >&2
      fi
      exit
    fi
  done <<LIST
$list
LIST
done

if [ "$wanted" != "3.12 3.11" ]; then
  echo "Python $wanted was not found on PATH, in ~/.pyenv or by uv." >&2
  exit 1
fi

cat >&2 <<'TEXT'
Firstword needs Python 3.12 (3.11 does too, without the SageMaker upstream), and none was found on
PATH, in ~/.pyenv or by uv. Install it with one of these, then run make again:
  Debian, Ubuntu   sudo apt install python3.12 python3.12-venv   (Debian 12: python3 python3-venv)
  Fedora           sudo dnf install python3.12
  macOS            brew install python@3.12
  pyenv            pyenv install 3.12
  uv               uv python install 3.12
or say where it is: make install PYTHON=/path/to/python3.12
TEXT
exit 1
