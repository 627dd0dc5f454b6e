#!/usr/bin/env bash
# Makes build/arm64/sysroot: the arm64 packages of Debian 12 that the engine and its tests are linked with, unpacked
# beside each other. Nothing of it is installed: dpkg of this machine learns of no foreign architecture, and -dev
# packages of two architectures need not be co-installable. Does nothing when the folder holds what this file asks
# for.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly packages=(
  libabsl-dev libgrpc++-dev libmimalloc-dev libprotobuf-dev libstdc++-12-dev
  protobuf-compiler-grpc  # the CMake files of libgrpc-dev want it there
  libbenchmark-dev libgmock-dev libgtest-dev librapidcheck-dev nlohmann-json3-dev)
readonly sysroot=$PWD/build/arm64/sysroot state=$PWD/build/arm64/apt stamp=build/arm64/sysroot.stamp

want=$(sha256sum <"$0")
[[ -e $stamp && $(<"$stamp") == "$want" ]] && exit
echo "arm64: downloading the packages that ${packages[*]} need"

# An apt of its own, which knows of no installed package: it resolves and downloads all that the packages need.
rm -rf "$sysroot" "$state"
mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$state/none"
: >"$state/status"
sources=(-o Dir::Etc::sourceparts="$state/none" -o Dir::Etc::sourcelist=/etc/apt/sources.list.d/debian.sources)
[[ -e /etc/apt/sources.list.d/debian.sources ]] || sources=()
arm64_apt() {
  apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State="$state" \
    -o Dir::State::status="$state/status" -o Dir::Cache="$state/cache" -o APT::Sandbox::User=root "${sources[@]}" "$@"
}
{
  arm64_apt update
  arm64_apt install --download-only -y --no-install-recommends "${packages[@]}"
} >build/arm64/apt.log 2>&1 || { tail -20 build/arm64/apt.log >&2; exit 1; }

# Debian has /lib as a link. What dpkg-query reads is written by hand, since installing would run programs of arm64.
readonly database=$sysroot/var/lib/dpkg
mkdir -p "$sysroot/usr/lib" "$sysroot/usr/bin" "$database/info" "$database/updates"
ln -s usr/lib "$sysroot/lib"
ln -s usr/bin "$sysroot/bin"
echo 1 >"$database/info/format"
printf 'amd64\narm64\n' >"$database/arch"
for deb in "$state"/cache/archives/*.deb; do
  dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink --no-same-owner -C "$sysroot"
  name=$(dpkg-deb --field "$deb" Package)
  [[ $(dpkg-deb --field "$deb" Multi-Arch) != same ]] || name+=:arm64
  dpkg-deb --fsys-tarfile "$deb" | tar -t | sed -E 's|^\./?|/|; s|(.)/$|\1|; s|^/$|/.|' >"$database/info/$name.list"
  { dpkg-deb --field "$deb" | sed '/^Package: /a Status: install ok installed'; echo; } >>"$database/status"
done
# Links to /lib/... mean the sysroot's.
find "$sysroot" -type l -lname '/*' | while read -r link; do
  ln -sfn "$(realpath --no-symlinks --relative-to="$(dirname "$link")" "$sysroot$(readlink "$link")")" "$link"
done
rm -rf "$state"
echo "$want" >"$stamp"
