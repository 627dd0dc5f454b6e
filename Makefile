# Loadline. Every target works alone on a fresh Debian 12 machine with Go 1.26: it installs or names what is
# missing, builds what it needs, and does nothing twice.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help deps renew engine go-binaries build test test-core test-asan test-tsan test-hostile test-scale \
  test-drawn simulate net mutants check-long race race-smoke test-karpenter test-cluster-api test-race fuzz bench \
  bench-cost bench-months bench-overload bench-peers bench-scheduler demo picture lint lint-fast tidy vulncheck \
  generate reference image-programs image-go arm64 test-arm64 images push test-images test-release release \
  verify-release test-e2e test-e2e-1.37 test-claim test-pairs test-fit-next clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' Makefile | sed -E 's/^([a-z0-9-]+):.*## /\1\t/' | \
	  while IFS=$$'\t' read -r name text; do printf '  make %-16s %s\n' "$$name" "$$text"; done

deps: ## install the Debian packages (root) or print the command that does, check Go, fetch its modules and the solver of tests
	@tools/deps.sh

renew: ## renew all dependencies: Go modules, Debian packages and the list of their tested versions
	@tools/renew.sh

build: engine go-binaries ## build build/bin and build/lib; KUBERNETES=1.37: build/bin/loadline-scheduler-1.37
	@printf 'built: '; ls -m build/bin build/lib/*.so | tr '\n' ' ' | sed 's/ *$$/\n/'

# A preset that changed is read again; all other changes of CMake files Ninja sees by itself.
build/build.ninja: CMakePresets.json | deps
	@cmake --preset release

engine: deps build/build.ninja
	@cmake --build --preset release --target loadline loadlined

# kube-scheduler reports the release that it was built from; without these flags it calls itself v0.0.0-master.
# KUBERNETES chooses among the minors of docs/kubernetes-minors.md: another than the default has a workspace of its own.
KUBERNETES ?= 1.36
ifneq ($(KUBERNETES),1.36)
  ifeq ($(wildcard kubernetes/$(KUBERNETES)/go.work),)
    $(error KUBERNETES=$(KUBERNETES): must be 1.36 or a folder of kubernetes/: $(notdir $(wildcard kubernetes/*)))
  endif
  MINOR_GOWORK = GOWORK=$(CURDIR)/kubernetes/$(KUBERNETES)/go.work
  MINOR_SUFFIX = -$(KUBERNETES)
endif
KUBERNETES_VERSION = $(shell cd shim/cmd/loadline-scheduler && \
  $(MINOR_GOWORK) go list -m -f '{{.Version}}' k8s.io/kubernetes)
VERSION_PACKAGE := k8s.io/component-base/version
SCHEDULER_LDFLAGS = -X $(VERSION_PACKAGE).gitVersion=$(KUBERNETES_VERSION) \
  -X $(VERSION_PACKAGE).gitMajor=$(word 1,$(subst ., ,$(KUBERNETES_VERSION:v%=%))) \
  -X $(VERSION_PACKAGE).gitMinor=$(word 2,$(subst ., ,$(KUBERNETES_VERSION)))

# Programs of the build have no symbols, those of images give theirs to packages of their own. A library of the command
# line loads plugins unless it is told not to: then each function would stay in the program, with its name.
GO_BUILD = go build -buildvcs=false -tags kustomize_disable_go_plugin_support
go-binaries: deps
	@mkdir -p build/bin
	@echo 'go build loadline, loadline-scheduler (minutes the first time, seconds after that)'
	@cd shim && $(GO_BUILD) -ldflags '-s -w' -o ../build/bin/loadline ./cmd/loadline
	@cd shim/cmd/loadline-scheduler && $(MINOR_GOWORK) $(GO_BUILD) -ldflags '-s -w $(SCHEDULER_LDFLAGS)' \
	  -o ../../../build/bin/loadline-scheduler$(MINOR_SUFFIX) .
	@ln -sf loadline build/bin/kubectl-loadline

test: build ## run all tests: C++, vectors, Go, end to end
	@cmake --build --preset release
	@tools/test.sh

test-core: deps ## build and run the C++ tests, file by file and little optimized: the fastest way for a change
	@cmake --preset dev && cmake --build --preset dev && ctest --preset dev

test-asan: deps ## run the C++ tests under the address and undefined behaviour sanitizers
	@cmake --preset asan && cmake --build --preset asan && ctest --preset asan

test-tsan: deps ## run the C++ tests that start threads under the thread sanitizer
	@cmake --preset tsan && cmake --build --preset tsan && ctest --preset tsan

test-hostile: deps build/build.ninja ## put hostile objects into a shared cluster, one by one and all together; HOSTILE_ARGS go to the test
	@cmake --build --preset release --target hostile_test
	@build/test/hostile_test --gtest_brief=1 $(HOSTILE_ARGS)

net: build ## compare the answers of build/lib with those of BASE, another libloadline.so; NET_ARGS
	@[[ -n '$(BASE)' ]] || { echo 'BASE: a libloadline.so to hold this one against' >&2; exit 2; }
	@folder=$(CURDIR)/build/net/$$(sha256sum '$(BASE)' | cut -c1-12); cd test/e2e && \
	  { [[ -d $$folder ]] || go run ./cmd/net record --library '$(abspath $(BASE))' --in "$$folder"; } && \
	  go run ./cmd/net compare --in "$$folder" $(NET_ARGS)

test-drawn: build ## the tests that draw their cases, with all of them: make test draws some
	@cmake --build --preset release --target core_test plugin_test
	@LOADLINE_DRAWN_CASES=all ctest --preset release --parallel 2 -R '^(core_test|plugin_test)$$'
	@cd test/e2e && LOADLINE_LIBRARY='$(CURDIR)/build/lib/libloadline.so' LOADLINE_DRAWN_CASES=all \
	  go test -count=1 -timeout 60m ./fit

SEEDS ?= 1000
simulate: deps build/build.ninja ## simulate SEEDS (1000) drawn clusters with faults; the first broken invariant is shown with a shrunk scenario
	@cmake --build --preset release --target simulate_seeds
	@build/test/simulate_seeds $(SEEDS)

SCALE_NODES ?= 2000
test-scale: build ## the autoscaler on SCALE_NODES (2000) nodes with 40 pods each, on a real API server, default options; SCALE_ARGS go to it
	@cd test/e2e && SCALE_NODES=$(SCALE_NODES) SCALE_ARGS='$(SCALE_ARGS)' \
	  LOADLINE_LIBRARY='$(CURDIR)/build/lib/libloadline.so' go test -count=1 -v -timeout 110m -run '^TestScale$$' .

mutants: deps ## put small faults into a copy of the tree, one at a time, and report those that no test notices; WORDS=... some
	@python3 tools/mutants.py $(WORDS)

test-e2e: build ## the plugin's tests and those on a real control plane alone; KUBERNETES=1.37: with that minor
	@$(MINOR_GOWORK) tools/test-e2e.sh

test-claim: build ## limits over allocatable on five seeds, of which `make test` has one
	@cd test/e2e && LOADLINE_LIBRARY='$(CURDIR)/build/lib/libloadline.so' LOADLINED='$(CURDIR)/build/bin/loadlined' \
	  go test -count=1 -timeout 30m -v -run '^TestClaimOnFiveSeeds$$' .

test-pairs: build ## families of rules that both act, two by two, on two real control planes; on a quiet machine
	@cd test/e2e && PAIRS=$${PAIRS:-.} LOADLINE_LIBRARY='$(CURDIR)/build/lib/libloadline.so' \
	  LOADLINED='$(CURDIR)/build/bin/loadlined' go test -count=1 -timeout 10m -v -run '^TestPairs' .

test-e2e-1.37:
	@$(MAKE) --no-print-directory test-e2e KUBERNETES=1.37

check-long: ## what takes hours, such as sanitizers, races and fuzzing; writes docs/check-long.md; CHECKS=... some
	@tools/check_long.py $(CHECKS)

test-race: engine ## run the Go tests of shim under the race detector, package by package; PACKAGES=./view/... some, PART=1/4 a quarter
	@LOADLINE_LIBRARY='$(CURDIR)/build/lib/libloadline.so' LOADLINED='$(CURDIR)/build/bin/loadlined' PART='$(PART)' \
	  tools/race.sh $(PACKAGES)

FUZZ_SECONDS ?= 60
fuzz: deps ## fuzz each target for FUZZ_SECONDS (60), starting from its corpus
	@cmake --preset fuzz && cmake --build --preset fuzz
	@tools/fuzz.sh $(FUZZ_SECONDS)

bench: deps build/build.ninja ## run the benchmarks; BENCH_ARGS go to build/test/bench/bench
	@cmake --build --preset release --target bench
	@build/test/bench/bench $(BENCH_ARGS)

COST_BENCH = build/test/cost/cost_bench manifests/prices/aws-us-east-1.csv manifests/prices/gce-us-central1.csv
bench-cost: deps build/build.ninja ## what growing costs by least-waste, by price and by a joint plan; OPENB=FILE adds a trace of pods
	@command -v cbc >/dev/null || tools/deps.sh coinor-cbc
	@cmake --build --preset release --target cost_bench
	@$(COST_BENCH) $(OPENB) | python3 test/cost/report.py --svg build/cost.svg

bench-arrivals: deps build/build.ninja ## what pods cost that arrive one by one; ARRIVALS_ARGS=--full-nodes=N --seeds=N
	@cmake --build --preset release --target arrivals_bench
	@gzip -dc manifests/prices/azure.csv.gz >build/azure.csv
	@build/test/cost/arrivals_bench $(filter %.csv,$(COST_BENCH)) build/azure.csv $(ARRIVALS_ARGS)

bench-months: build ## weeks of clusters with and without `replace`; SCENARIOS=FOLDER others, SEEDS=N, ONLY=NAME some
	@python3 tools/bench_months.py --seeds=$(RACE_SEEDS) --only='$(ONLY)' $(if $(SCENARIOS),'$(abspath $(SCENARIOS))')

OVERLOAD_ARGS ?=
bench-overload: $(if $(DATA),deps build/build.ninja) ## how much real overload scores and lines leave, on each month of DATA=FOLDER; OVERLOAD_ARGS=--orders=5: fewer orders
	@DATA='$(DATA)' tools/bench_overload.sh $(OVERLOAD_ARGS)

test-fit-next: ## hold answers and scores against the plugins of Kubernetes 1.37 (make test: 1.36)
	@cd test/e2e && GOWORK=off go test -tags kubernetes137 -modfile=go.137.mod ./fit -timeout 60m

bench-peers: ## what fits where, worked out by kube-scheduler's framework in Go, to hold against `make bench`
	@cd test/e2e && go test ./fit -run '^$$' -bench Upstream -timeout 60m

bench-scheduler: build ## scheduler_perf: default profile, plugin on both transports, extender; BENCH_ARGS=--repeats=N, ..., KUBERNETES=1.37
	@$(MINOR_GOWORK) test/e2e/bench-scheduler.sh $(BENCH_ARGS)

demo: build ## place pods on a real control plane, with and without us, and autoscale; TRACE=DIR, SEED=N
	@cd test/e2e && go run ./cmd/demo $(if $(TRACE),--trace='$(abspath $(TRACE))') $(if $(SEED),--seed='$(SEED)')

RACE_SEEDS := $(if $(filter command environment,$(origin SEEDS)),$(SEEDS),1)
race: build ## Loadline and Karpenter through the same load; SEEDS=N, SCENARIO=day|batch|limits, CONTESTANTS, RACE_ARGS
	@cd test/e2e && go run ./cmd/race --seeds=$(RACE_SEEDS) $(if $(SCENARIO),--scenario='$(SCENARIO)') \
	  $(if $(CONTESTANTS),--contestants='$(CONTESTANTS)') $(RACE_ARGS)

race-smoke: ## the race in a minute, to see that it works, with Karpenter
	@$(MAKE) --no-print-directory race SCENARIO=smoke CONTESTANTS='loadline;karpenter' \
	  RACE_ARGS=--out='$(CURDIR)/build/race-smoke'

test-karpenter: build ## nodes by NodeClaims, and commands of docs/platforms.md, with Karpenter's own controllers
	@cd test/e2e && BUILD_KARPENTER=1 LOADLINE_LIBRARY='$(CURDIR)/build/lib/libloadline.so' \
	  LOADLINED='$(CURDIR)/build/bin/loadlined' go test . -v -run Karpenter -count=1 -timeout 60m

test-cluster-api: build ## the autoscaler, and commands of docs/platforms.md, with Cluster API's own core controllers
	@cd test/e2e && BUILD_CLUSTER_API=1 LOADLINE_LIBRARY='$(CURDIR)/build/lib/libloadline.so' \
	  LOADLINED='$(CURDIR)/build/bin/loadlined' go test . -v -run ClusterAPI -count=1 -timeout 60m

picture: ## draw the picture of the README again, from the page of the last `make demo`
	@python3 tools/readme_picture.py build/demo/placement.html docs/placement.svg

lint: deps ## check formats, layers, comments, Go by staticcheck; make tidy looks more closely
	@tools/lint.sh

lint-fast: ## runs the checks of lint that take seconds: formats, layers, pages, comments
	@tools/lint.sh fast

tidy: deps ## run clang-tidy and go vet: half an hour the first time
	@tools/tidy.sh

vulncheck: deps ## look for known vulnerabilities that our Go programs reach, in VULNDB, a folder that vulndb.zip of vuln.go.dev unpacks to
	@tools/vulncheck.sh '$(or $(VULNDB),build/vulndb)'

generate: deps ## generate the Go code of proto/ again
	@shim/api/generate.sh

# Everything in an image has the time of the commit, so that two builds of one commit are the same, bit by bit.
VERSION ?= v$(shell sed -nE 's/^const Version = "(.*)"$$/\1/p' shim/engine/version.go)
REGISTRY ?=
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
RELEASE := build/images/bin/release

$(RELEASE): deps
	@mkdir -p build/images/bin
	@cd tools/release && GOWORK=off go build -trimpath -buildvcs=false -o ../../$(RELEASE) .

# Go programs for images are built with -trimpath: they do not say where that was. The scheduler comes in every minor,
# and what it says of itself is worked out by a make of its own for each.
IMAGE_BUILD := build/images/programs
ARM64_BUILD := build/arm64/programs
ARCHITECTURES ?= amd64
MINORS := 1.36 $(notdir $(wildcard kubernetes/*))

image-programs: engine
	@mkdir -p $(IMAGE_BUILD)/bin $(IMAGE_BUILD)/lib
	@cp build/bin/loadlined $(IMAGE_BUILD)/bin/ && cp build/lib/libloadline.so* $(IMAGE_BUILD)/lib/
	@$(foreach minor,$(MINORS),$(MAKE) --no-print-directory image-go KUBERNETES=$(minor) INTO=$(IMAGE_BUILD) &&) true

image-go:
	@printf 'go build -trimpath loadline, loadline-scheduler %s into %s %s\n' '$(KUBERNETES)' '$(INTO)' \
	  '(minutes the first time, seconds after that)'
	@cd shim && $(GO_BUILD) -trimpath -o ../$(INTO)/bin/loadline ./cmd/loadline
	@cd shim/cmd/loadline-scheduler && $(MINOR_GOWORK) $(GO_BUILD) -trimpath -ldflags '$(SCHEDULER_LDFLAGS)' \
	  -o ../../../$(INTO)/bin/loadline-scheduler$(MINOR_SUFFIX) .

arm64: deps ## build the programs for linux/arm64 in build/arm64/programs, by cross compilation
	@tools/deps.sh g++-aarch64-linux-gnu qemu-user-static
	@tools/arm64/sysroot.sh
	@cmake --preset arm64 && cmake --build --preset arm64 --target loadline loadlined
	@mkdir -p $(ARM64_BUILD)/bin $(ARM64_BUILD)/lib
	@cp build/arm64/build/bin/loadlined $(ARM64_BUILD)/bin/ && cp build/arm64/build/lib/libloadline.so* $(ARM64_BUILD)/lib/
	@export GOARCH=arm64 CGO_ENABLED=1 CC=aarch64-linux-gnu-gcc; \
	  $(foreach minor,$(MINORS),$(MAKE) --no-print-directory image-go KUBERNETES=$(minor) INTO=$(ARM64_BUILD) &&) true

test-arm64: arm64 ## run the C++ tests of linux/arm64, the programs and their C ABI under qemu-user
	@tools/arm64/test.sh

images: image-programs $(if $(filter arm64,$(ARCHITECTURES)),arm64) $(RELEASE) ## make OCI images in build/images, without a container daemon; ARCHITECTURES='amd64 arm64'
	@$(RELEASE) images --build $(IMAGE_BUILD) $(if $(filter arm64,$(ARCHITECTURES)),--arm64 $(ARM64_BUILD)) \
	  --out build/images --version '$(VERSION)' $(if $(REGISTRY),--registry '$(REGISTRY)')

push: $(RELEASE) ## push the images of `make images` to REGISTRY, as docker login or podman login allows
	@$(RELEASE) push --from build/images --version '$(VERSION)' --registry '$(REGISTRY)'

release: images ## make a signed release of VERSION in build/release: SIGNING_KEY is a secret key of minisign, MINISIGN_PASSWORD its password
	@$(RELEASE) release --images build/images --build $(IMAGE_BUILD) \
	  $(if $(filter arm64,$(ARCHITECTURES)),--arm64 $(ARM64_BUILD)) \
	  --out build/release --version '$(VERSION)' --key '$(SIGNING_KEY)'

verify-release: $(RELEASE) ## check signature, hashes, images, bills of materials and provenance of a release with PUBLIC_KEY
	@$(RELEASE) verify --from build/release --version '$(VERSION)' --key '$(PUBLIC_KEY)'

test-release: build ## make images and a release twice, install from them, and look for what is not verified
	@cd tools/release && GOWORK=off go test -count=1 -timeout 60m ./...

test-images: build $(RELEASE) ## run the programs of images, from their files alone and without rights, on a real control plane (root)
	@tools/test_images.sh $(RELEASE)

reference: build ## write the pages of docs/ that follow from the sources: flags, kinds of files, messages, runbooks
	@cd tools/reference && GOWORK=off go run . ../..

clean: ## remove build/
	@rm -rf build
