#!/bin/sh
# run.sh BINARY... - run the tests of the store on each of these server binaries, such as
# /opt/redis-6/bin/redis-server or /usr/bin/valkey-server, and say which passed.
set -u
[ $# -gt 0 ] || {
	echo "no server to test; give their binaries: make redis-versions REDIS='/opt/redis-6/bin/redis-server /usr/bin/valkey-server'" >&2
	exit 2
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
passed= failed=
for binary in "$@"; do
	server=$(realpath -- "$binary") || exit 2
	# The tests start what PATH has for redis-server, and some put a clock under it: a link,
	# since a script around it would be all that gets the clock.
	ln -sf "$server" "$dir/redis-server"
	version=$("$dir/redis-server" --version) || {
		echo "$binary is not a server: $version" >&2
		exit 2
	}
	version=$(printf '%s' "$version" | sed -n 's/^\([A-Z][a-z]*\) server v=\([0-9.]*\).*/\1 \2/p')
	echo "== $version: $binary"
	if PATH="$dir:$PATH" go test -count=1 ./redisstore ./internal/redisserver ./internal/replay/cases; then
		passed="$passed, $version"
	else
		failed="$failed, $version"
	fi
done
echo "passed:${passed#,}"
[ -z "$failed" ] || {
	echo "failed:${failed#,}" >&2
	exit 1
}
