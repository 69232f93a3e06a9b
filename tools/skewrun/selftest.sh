#!/bin/bash
# Shows that an unmodified Go program sees +320 ms and -50 ms steps of its wall clock while
# its monotonic clock, and the machine's own clock, stay as they are.
set -u
cd "$(dirname "$0")"
T=$(mktemp -d); trap 'rm -rf "$T"' EXIT
fail() { echo "FAIL: $*"; exit 1; }
CGO_ENABLED=0 go build -o "$T/demo" ./testdata/demo || fail "build of the demo"
before=$(date +%s%N)

echo "== 1. steps of +320 ms and -50 ms"
./skewrun ctl "$T/ctl" set 0 >/dev/null
./skewrun run "$T/ctl" -- "$T/demo" -n 24 >"$T/out" & p=$!
sleep 0.45; ./skewrun ctl "$T/ctl" step +320ms
sleep 0.4;  ./skewrun ctl "$T/ctl" step -50ms
wait $p || fail "the demo's exit status"
cat "$T/out"
awk '{gsub(/\+/,"",$6); v[$6]++} END {
	ok = 1
	for (s in v) { k = s + 0; if (!(k > -0.1 && k < 0.1 || k > 319.9 && k < 320.1 || k > 269.9 && k < 270.1)) { print "unexpected offset " k; ok = 0 } }
	exit !ok }' "$T/out" || fail "offsets other than 0, +320 and +270 ms"
grep -q '+320\.0' "$T/out" && grep -q '+270\.0' "$T/out" || fail "a step was not seen"

echo "== 2. drift of 500 ppm for one second gives about 0.5 ms"
./skewrun ctl "$T/ctl" set 0 >/dev/null; ./skewrun ctl "$T/ctl" rate 500ppm >/dev/null
./skewrun run "$T/ctl" -- "$T/demo" -n 2 -every 1s | tee "$T/out"
awk 'NR==2 {gsub(/\+/,"",$6); exit !($6 > 0.45 && $6 < 0.55)}' "$T/out" || fail "drift"

echo "== 3. exit status, signals, plain system calls (-s) and followed children (-f)"
./skewrun ctl "$T/ctl" rate 0ppm >/dev/null; ./skewrun ctl "$T/ctl" set 3600s >/dev/null
./skewrun run "$T/ctl" -- sh -c 'exit 7'; [ $? = 7 ] || fail "exit status"
./skewrun run "$T/ctl" -- sh -c 'kill -TERM $$'; [ $? = 143 ] || fail "signal status"
a=$(./skewrun run -s -f "$T/ctl" -- sh -c 'date +%s'); b=$(date +%s)
d=$((a - b)); [ $d -ge 3598 ] && [ $d -le 3601 ] || fail "date in a followed child is off by $d, want 3600"

after=$(date +%s%N); d=$(( (after - before) / 1000000 ))
[ $d -gt 0 ] && [ $d -lt 60000 ] || fail "the machine's own clock moved"
echo "PASS"
