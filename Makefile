# Targets for development. `make demo` needs only Go. `make test` also needs
# redis-server, PostgreSQL, nginx and the languages of the examples: Node, a JDK, Python,
# PHP, Ruby and curl. `make bench` needs nginx with Lua, wrk and h2load. Both install them on Debian
# and Ubuntu.

.DEFAULT_GOAL := build

# As in scripts/build, so that everything without the race detector is compiled once.
export CGO_ENABLED = 0
export GOFLAGS := -trimpath $(GOFLAGS)

.PHONY: build demo test test-slow test-needs browser docs compose-test image release-test attack attack-short attack-needs power-cut chaos chaos-short differential differential-short differential-needs lint shops shops-short shops-latency shops-needs upgrade fuzz bench bench-build bench-queue bench-waiting pgo

# bin/caddy: Caddy with Stockgate compiled in, static as in releases and in the image.
build:
	@echo "Building Caddy with Stockgate; the first build takes 2 to 6 minutes on a small machine."
	@scripts/build bin/caddy

# A sale in one process: the gate, a shop and a crowd of buyers.
demo: build
	@bin/caddy stockgate demo --once

# What tests draw at random: few cases, the same each time, so that CI fails only by what has
# changed. DRAW=many draws more of them from another seed each day; SEED=7 repeats one.
DRAW ?= few
SEED ?= $(if $(filter many,$(DRAW)),$(shell date +%Y%m%d),1)

# Everything that CI checks, see scripts/test.
test: test-needs lint
	DRAW=$(DRAW) RAPID_SEED=$(SEED) scripts/test

# The same tests at a third of the speed: a package on each core, beside two processes that never rest.
# PACKAGES=./internal/edge tries these; CORES=1 leaves the other cores to other work.
PACKAGES ?=
test-slow: test-needs
	DRAW=$(DRAW) RAPID_SEED=$(SEED) scripts/test-slow $(PACKAGES)

test-needs:
	scripts/need redis-server postgres mariadbd gcc node javac php ruby python3-cryptography curl nginx prometheus promtool script

# The dashboard, and the example page of examples/challenge, in Chromium. Screenshots are in
# bin/screens. The dashboard's sources must give what is committed.
browser:
	scripts/need chromium node npm
	npm ci --silent --prefix caddymodule/operate/dashboard/web
	go vet -tags browser ./e2e ./caddymodule/fast ./caddymodule/operate/dashboard
	go test -tags browser -timeout 40m -run '^TestBrowser' ./e2e ./caddymodule/fast ./caddymodule/operate/dashboard

# The auditor attacks bin/caddy, see bench/results/evidence.md: every scenario in full length,
# updating the table of that page. CI runs attack-short. SEED=7 repeats the schedule of
# that seed, SCENARIOS=dead-shard,carts runs only these.
SCENARIOS ?= all
ATTACKFLAGS ?=
attack: attack-needs
	go run ./internal/test/auditor/attack -long -seed $(SEED) -scenarios $(SCENARIOS) -out bench/results/evidence.json -evidence bench/results/evidence.md $(ATTACKFLAGS)
attack-short: attack-needs
	go run ./internal/test/auditor/attack -seed $(SEED) -scenarios $(SCENARIOS) $(ATTACKFLAGS)

# The disk of a store forgets 50 times what was not synced, see bench/powercut. It needs root and
# /dev/fuse, so CI does not run it. FSYNC=everysec shows what it finds where Redis does not sync each answer.
FSYNC ?=
power-cut: attack-needs
	go build -C bench -trimpath -o ../bin/powercut ./powercut
	FSYNC=$(FSYNC) go run ./internal/test/auditor/attack -long -seed $(SEED) -scenarios power-cut \
		$(if $(FSYNC),,-out bench/results/evidence.json -evidence bench/results/evidence.md) $(ATTACKFLAGS)

attack-needs: build
	scripts/need redis-server postgres gcc

# Two edges behind a balancer, the shop, Prometheus: examples/compose. In containers where an
# engine runs, elsewhere as plain processes; it says which.
compose-test: build
	scripts/need redis-server postgres prometheus python3 curl file
	BINARY=bin/caddy scripts/compose-test

# The container image stockgate:latest, from a binary that is built here and the redis-server of this machine.
image:
	scripts/need file redis-server
	scripts/image

# What scripts/release makes is the same in another directory, can be verified, runs and installs. Only
# for this machine's architecture: the other one would be compiled from scratch.
release-test:
	scripts/need file dpkg-deb redis-server curl
	scripts/release-test

# Sales on every topology of Redis while a nemesis breaks them, see bench/results/evidence.md:
# SEEDS=200 seeds from SEED on, for each of CONFIGS. CI runs chaos-short. What fails prints
# its schedule, and the shortest prefix of it that still fails.
SEEDS ?= 10
CONFIGS ?= all
CHAOSFLAGS ?=
chaos: attack-needs
	go run ./internal/test/chaos -seed $(SEED) -seeds $(SEEDS) -configs $(CONFIGS) $(CHAOSFLAGS)
chaos-short: attack-needs
	go run ./internal/test/chaos -short -seed $(SEED) -configs $(CONFIGS) $(CHAOSFLAGS)

# Edges of the last version and of this one sell together, see docs/runbook.md#upgrade: scripts/build-last builds the
# other one from history. TOGETHER=all lets the edges of every scenario be of both versions in turn.
TOGETHER ?= upgrade,upgrade-store,storm-of-operators,redis-and-sql
upgrade: attack-needs
	scripts/build-last
	go vet -tags upgrade ./e2e/upgrade
	go test -vet=off -tags upgrade ./e2e/upgrade
	go run ./internal/test/auditor/attack -seed $(SEED) -caddy bin/last/caddy,bin/caddy -scenarios $(TOGETHER) $(ATTACKFLAGS)
	go run ./internal/test/chaos -short -seed $(SEED) -caddy bin/caddy,bin/last/caddy -configs replicas-acks $(CHAOSFLAGS)

# The recipes of examples/vendure and examples/medusa in front of those shops, which npm brings
# from the lock files: 500 buyers, hostile requests, and 60 carts that change while they are paid.
# Chromium buys too: what is learned from its recording sells out exactly. `go test -tags shops -run '^TestMedusa$' ./internal/test/shoptest -update`
# makes the recordings of internal/learn/testdata again. CI runs shops-short: BUYERS=60 CARTS=8 for less of it. shops-latency measures what the gate adds,
# on a machine that does nothing else.
shops: shops-needs
	go test -tags shops -timeout 60m -run '^Test(Vendure|Medusa)$$' -v ./internal/test/shoptest
shops-short: shops-needs
	BUYERS=60 CARTS=8 go test -tags shops -timeout 60m -run '^Test(Vendure|Medusa)$$' ./internal/test/shoptest
shops-latency: shops-needs
	go test -tags shops -timeout 30m -run 'Latency$$' -v ./internal/test/shoptest

shops-needs: build
	scripts/need redis-server postgres node npm chromium
	go vet -tags shops ./internal/test/shoptest

lint:
	scripts/lint

# The options, metrics and commands in docs, from the source; and the site of docs, in bin/site. A link that
# leads nowhere is an error.
docs:
	scripts/need mkdocs
	go test -count=1 -vet=off -run '^TestReference$$' ./internal/test/reference -update
	go test -count=1 -vet=off -run '^TestReference$$' ./caddymodule/command -update
	PYTHONDONTWRITEBYTECODE=1 mkdocs build --quiet --strict

# Every fuzz target for FUZZTIME each.
FUZZTIME ?= 10s
fuzz:
	scripts/fuzz $(FUZZTIME)

# Sends odd requests through a gate to many real servers: each must read what the token
# says. 1,000,000 of them, or 20,000 in CI; SEED=7 for others.
differential: differential-needs
	go run ./e2e/differential -caddy bin/caddy -seed $(SEED) -requests 1000000
differential-short: differential-needs
	go run ./e2e/differential -caddy bin/caddy -seed $(SEED) -requests 20000

differential-needs: build
	scripts/need redis-server node npm php-fpm puma rack python3-flask python3-django javac tomcat10 gson jackson nginx nginx-lua lua-cjson

# Stockgate beside plain Caddy and nginx with Lua, see bench/README.md. The machine must
# be idle otherwise. BENCHTIME=3s RUNS=3 for a first look, CASES="sold-out-* reserve"
# for some cases, ATTEMPTS for the whole sale.
BENCHTIME ?= 10s
RUNS ?= 7
CASES ?=
ATTEMPTS ?= 0
RESULTS ?= bench/results/latest.json
BENCHFLAGS ?=
bench: bench-build
	bin/bench -time $(BENCHTIME) -runs $(RUNS) -attempts $(ATTEMPTS) -results $(RESULTS) \
		-pgo=$(if $(wildcard cmd/caddy/default.pgo),true,false) $(BENCHFLAGS) $(CASES)

# Uses `make build`, and so cmd/caddy/default.pgo if it exists.
# How orders reach a slow shop with the gate's queue, without it, and behind nginx.
bench-queue: build
	scripts/need nginx redis-server
	go build -C bench -trimpath -o ../bin/bench-line ./line
	taskset -c 1 bin/bench-line -caddy $(CURDIR)/bin/caddy $(BENCHFLAGS)

# What people who wait for units take of an edge's memory.
bench-waiting: build
	scripts/need taskset redis-server
	go build -C bench -trimpath -o ../bin/bench-waiting ./waiting
	bin/bench-waiting -caddy $(CURDIR)/bin/caddy $(BENCHFLAGS)

bench-build: build
	scripts/need taskset redis-server wrk nginx h2load nginx-lua lua-cjson lua-nginx-redis
	go build -C bench -trimpath -o ../bin/bench .

# Writes cmd/caddy/default.pgo, a profile of the gate in the benchmark.
pgo:
	bench/pgo
