#!/bin/sh
# need.sh COMMAND:PACKAGE... - see that the commands are there; install the Debian
# packages of those that are not. NO_INSTALL=1 installs nothing and fails with the list.
set -eu
missing= packages=
for pair in "$@"; do
	command=${pair%%:*} package=${pair#*:}
	command -v "$command" >/dev/null 2>&1 && continue
	missing="$missing $command" packages="$packages $package"
done
[ -n "$missing" ] || exit 0
if [ "${NO_INSTALL:-}" = 1 ]; then
	echo "missing:$missing" >&2
	echo "install the packages$packages (Debian names), or run again without NO_INSTALL=1" >&2
	exit 1
fi
command -v apt-get >/dev/null 2>&1 || {
	echo "missing:$missing; this machine has no apt-get: install the equivalents of$packages by hand" >&2
	exit 1
}
echo "about to install with apt-get:$packages (for:$missing)"
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -qq
# Services are not started: the tests start their own, on ports of their own.
printf '#!/bin/sh\nexit 101\n' >"${TMPDIR:-/tmp}/policy-rc.d.$$"
chmod +x "${TMPDIR:-/tmp}/policy-rc.d.$$"
if [ ! -e /usr/sbin/policy-rc.d ]; then
	$sudo cp "${TMPDIR:-/tmp}/policy-rc.d.$$" /usr/sbin/policy-rc.d
	trap '$sudo rm -f /usr/sbin/policy-rc.d "${TMPDIR:-/tmp}/policy-rc.d.$$"' EXIT
else
	trap 'rm -f "${TMPDIR:-/tmp}/policy-rc.d.$$"' EXIT
fi
$sudo apt-get install -y -qq --no-install-recommends $packages >/dev/null
# Nor do they start with the machine from now on.
if command -v systemctl >/dev/null 2>&1; then
	for package in $packages; do
		$sudo systemctl disable -q "$package.service" 2>/dev/null || true # most packages have none
	done
fi
