# make           lists the targets
# make run       builds and starts a gateway with a demo upstream
# make test      everything CI runs

NEED = tools/need/need.sh
SUM = go tool -modfile=tools/gotestsum/go.mod gotestsum --format pkgname-and-test-fails --format-hide-empty-pkg
# Packages whose goroutines meet; the rest is pure and not worth the race detector's time.
RACE = . ./clock/... ./memstore/... ./httplimit/... ./httpretry/... ./grpcretry/... ./promlimit/... ./internal/retry/... ./internal/ledgers/... ./lease/... ./batch/... ./internal/gateway/...

.PHONY: help run test unit race check model bench lint need endtoend redis-versions figures

help:
	@sed -n 's/^# //p' Makefile

run:
	go run ./cmd/escapement gateway --demo

test: check unit race endtoend

# make check     formatting, go vet and the architecture tests, under a minute
check:
	@test -z "$$(gofmt -l .)" || { echo "run gofmt -w on:"; gofmt -l .; exit 1; }
	go vet ./...
	go test ./internal/archtest

unit: need
	$(SUM) -- $$(go list ./... | grep -v internal/endtoend)

# Real processes that mostly wait for windows to end: all of them at once.
endtoend: need
	$(SUM) -- -parallel 32 ./internal/endtoend

race:
	$(SUM) -- -race -short $(RACE)

need:
	@$(NEED) gcc:gcc readelf:binutils redis-server:redis-server promtool:prometheus prometheus:prometheus

# make model     5 million random steps per algorithm against the exact model
model:
	go test ./algo -run TestModel -count=1 -timeout 2h -v -steps 5000000

# make figures   what sharing a limit costs in simulated worlds, target beside measured
figures:
	@go test ./internal/sim -count=1 -v | awk '/target/ {sub(/^ *[a-z_]+\.go:[0-9]+: /, ""); print} /^(---|===) *FAIL|^FAIL/ {print; bad=1} END {exit bad}'

# make bench     our limiters beside others and beside the floor
bench:
	@$(MAKE) -s -C bench

# make lint      golangci-lint (its first build takes minutes)
lint:
	go tool -modfile=tools/lint/go.mod golangci-lint run

# make redis-versions REDIS='PATH...'   the store's tests on other server binaries
redis-versions:
	@tools/redisversions/run.sh $(REDIS)
