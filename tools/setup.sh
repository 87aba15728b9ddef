# Sourced by `run` and `test`: installs missing Debian packages and builds. Needs $root, the project's folder.
# Everything is said on stderr; stdout belongs to the program that is run.

say() { printf '%s\n' "$*" >&2; }

missing_packages() {
  local names name
  names=$(sed -n 's/^\([a-z0-9][^ ]*\).*/\1/p' "$root/tools/packages.txt")
  local installed=" "
  while read -r name; do installed+="$name "; done < <(
    dpkg-query -W -f='${db:Status-Status} ${Package}\n' $names 2>/dev/null | sed -n 's/^installed //p')
  for name in $names; do [[ $installed == *" $name "* ]] || printf '%s\n' "$name"; done
}

as_root() {
  if ((EUID == 0)); then env DEBIAN_FRONTEND=noninteractive "$@"; else sudo env DEBIAN_FRONTEND=noninteractive "$@"; fi
}

install_packages() {
  command -v dpkg-query >/dev/null || return 0  # no Debian: CMake says what it cannot find
  local missing
  missing=$(missing_packages)
  [[ -z $missing ]] && return 0
  missing=${missing//$'\n'/ }
  if ((EUID != 0)) && ! command -v sudo >/dev/null; then
    say "outrace needs Debian packages that are not installed, and there is neither sudo nor root to install them."
    say "As root, run:"
    say "  apt-get update && apt-get install -y --no-install-recommends $missing"
    exit 1
  fi
  say "installing: $missing"
  # The package lists may be absent (fresh system) or old (a download answers 404): then they are fetched, once.
  local install="apt-get install -y -qq --no-install-recommends -o Dpkg::Use-Pty=0 $missing"
  if ! apt-get install -s -qq $missing >/dev/null 2>&1 || ! as_root $install >&2; then
    as_root apt-get update -qq >&2 && as_root $install >&2 || {
      say "could not install: $missing"
      exit 1
    }
  fi
}

# build PRESET FOLDER [TARGET]: one build at a time in a folder; a second caller waits for the first.
build() {
  local preset=$1 folder=$root/$2 target=${3:-all}
  command -v ninja >/dev/null && export CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja}
  mkdir -p "$folder"
  (
    flock 9
    # The stamp carries the time at which the build began, so a file that is edited meanwhile counts as newer.
    touch "$folder/.started"
    cd "$root"
    if [[ ! -e $folder/CMakeCache.txt ]]; then cmake --preset "$preset" >&2 || exit 1; fi
    cmake --build "$folder" --target "$target" --parallel "$(nproc)" >&2 || exit 1
    mv "$folder/.started" "$folder/.built"
  ) 9>"$folder/.lock" || {
    say "the build failed"
    exit 1
  }
}
