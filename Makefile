# `make check` is what CI runs; CONTRIBUTING.md says what each target is for.

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0

FUZZTIME  ?= 10s
BENCHARGS ?=
TESTARGS  ?=

# A folder that npm fills is as new as the lock file that npm leaves in it.
E2E_NPM   := e2e/npm/node_modules/.package-lock.json e2e/browser/node_modules/.package-lock.json
BENCH_NPM := bench/npm/node_modules/.package-lock.json

.PHONY: build test test-unit test-e2e check format lint vulncheck cross bench fuzz mutants conformance chaos release clean

build:
	CGO_ENABLED=0 go build -trimpath -o bin/signalbox ./cmd/signalbox

test: test-unit test-e2e

test-unit:
	go test -race $(TESTARGS) ./...

# What it tests is outside of its module, so no result is kept.
test-e2e: $(E2E_NPM)
	cd e2e && go test -race -count=1 -timeout 25m $(TESTARGS) ./...

check: format lint vulncheck cross test

format:
	@echo 'gofmt -l'
	@unformatted=$$(find . -name node_modules -prune -o -name '*.go' -print | xargs gofmt -l); \
	if [ -n "$$unformatted" ]; then echo "not formatted:"; echo "$$unformatted"; exit 1; fi

lint:
	go vet ./...
	cd e2e && go vet ./...
	cd bench && go vet ./...
	go run $(STATICCHECK) ./...
	cd e2e && go run $(STATICCHECK) ./...
	cd bench && go run $(STATICCHECK) ./...

vulncheck:
	scripts/vulncheck.sh $(GOVULNCHECK)

# Other platforms: their tests at least compile, and the product builds.
cross:
	CGO_ENABLED=0 GOOS=darwin go vet ./...
	CGO_ENABLED=0 GOOS=darwin go build -o /dev/null ./cmd/signalbox
	CGO_ENABLED=0 GOOS=windows go vet ./...
	CGO_ENABLED=0 GOOS=windows go build -o /dev/null ./cmd/signalbox
	CGO_ENABLED=0 GOOS=linux GOARCH=arm go build -o /dev/null ./cmd/signalbox

bench: build $(BENCH_NPM)
	cd bench && go run . $(BENCHARGS)

fuzz:
	scripts/fuzz.sh $(FUZZTIME)

mutants:
	go run ./internal/mutants

conformance: $(E2E_NPM)
	cd e2e && go test -count=1 -v -timeout 30m -run '^(TestConformance|TestEra(Direct|Conformance|Client))' .

# Replicas under load while parts of them fail, for a minute and more; needs redis-server and nginx.
chaos:
	cd e2e && SIGNALBOX_E2E_CHAOS=long go test -count=1 -v -run '^(TestChaos|TestRedisIsAway|TestHomeIsKilled|TestRollingRestart|TestWarmRequests)' .

# Archives for every platform, and their checksums.
release:
	scripts/release.sh dist

clean:
	rm -rf bin dist e2e/npm/node_modules e2e/browser/node_modules bench/npm/node_modules

%/node_modules/.package-lock.json: %/package-lock.json
	cd $* && npm ci --no-audit --no-fund
