# The builds of this project and of the control plane it is tested on share one build cache, so all are made without cgo.
export CGO_ENABLED := 0

# The properties are tested on the same random worlds each time, so that a failure is of the change that is tested. Others each
# time, and more: make test RAPID_SEED=0 RAPID_CHECKS=10000
export RAPID_SEED ?= 1

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X hekla.sh/hekla/internal/version.Version=$(VERSION)

# What starts goroutines, or is called by several. What decides starts none, which test/imports checks, so that the race detector
# would find nothing there.
RACED := ./internal/edge/... ./internal/placement/kube ./internal/placement/supply ./pkg/plugins/extender/... ./pkg/scheduler \
	./internal/answers/... ./internal/cli/session ./internal/controllers/internal/recorder ./internal/controllers/jobflow

.PHONY: all
all: build

BIN ?= bin

# The other names of hekla: what it does, it tells by the name it is started by.
NAMES := vcctl vsub vjobs vqueues vcancel vsuspend vresume kubectl-hekla kubectl_complete-hekla

# Each program is named before it is compiled: the go command is silent meanwhile.
compile = echo "  $(patsubst hekla-hekla,hekla,hekla-$(1)) ..." && \
	go build -ldflags "$(LDFLAGS)" -o $(BIN)/$(patsubst hekla-hekla,hekla,hekla-$(1)) ./cmd/$(1) || exit 1;

.PHONY: build
build: links ## Build hekla, hekla-scheduler and hekla-controllers into bin/, and link hekla to its other names.
	@echo "Compiling Hekla into $(BIN)/. The first time that takes some minutes, later seconds."
	@$(foreach program,hekla scheduler controllers,$(call compile,$(program)))

.PHONY: links
links: ## Link hekla to its other names: vcctl, vsub, kubectl-hekla and so on.
	@mkdir -p $(BIN)
	@for name in $(NAMES); do ln -sfn hekla $(BIN)/$$name; done

# Packages whose tests start an API server have a file apiserver_test.go, or one whose name ends so. They wait more than they
# compute, so several run at once, and together with the others; those that take longest start first.
LONGEST := ./test/e2e ./internal/controllers ./test/chaos ./test/operators ./test/pages ./test/installer ./internal/benchmark ./test/tenant ./test/why
SERVED := $(sort $(patsubst %/,./%,$(dir $(shell find cmd internal pkg test -name '*apiserver_test.go'))))
MODULE := hekla.sh/hekla

.PHONY: test
test: build ## Run every test. The first run builds a control plane, which takes some minutes. make lint vets, so tests do not.
	@$(MAKE) --no-print-directory -j2 test-served test-alone

.PHONY: test-served
test-served: ## Run the tests that need an API server.
	go test -vet=off -p=4 -timeout=60m $(LONGEST) $(filter-out $(LONGEST),$(SERVED))

.PHONY: test-alone
test-alone: ## Run the tests that need no API server.
	go test -vet=off -timeout=40m $$(go list ./... | grep -vxF $(patsubst ./%,-e $(MODULE)/%,$(SERVED)))
	cd hack/release && go test -vet=off ./...

MUTANTS ?= all

.PHONY: mutants
mutants: ## Put defects into the code, one at a time, and see whether they are found. make mutants MUTANTS=NAME,NAME takes some of them.
	code=0; HEKLA_MUTANTS=$(MUTANTS) go test -vet=off -count=1 -timeout=0 -v -run 'TestEachMutantIsFound$$' ./test/mutants || code=$$?; \
	go test -vet=off -count=1 -run 'TestThePageShowsTheFindings$$' ./test/mutants -rewrite && exit $$code

.PHONY: check
check: ## Check all that needs no API server, and say how long each step took. Some minutes after a change of the core, else seconds.
	hack/check.sh

.PHONY: race
race: ## Run the tests of what has goroutines under the race detector.
	CGO_ENABLED=1 go test -race -short -vet=off -timeout=40m $(RACED)

.PHONY: lint
lint: ## Check the format, go vet and staticcheck.
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$unformatted" || { echo "not gofmt-ed: $$unformatted"; exit 1; }
	go vet ./...
	cd hack/release && go vet ./...
	cd test/operators/programs && go vet ./...
	go tool staticcheck $$(go list ./... | grep -v /pkg/client/) # what is generated is the generator's to mend
	staticcheck=$$(go tool -n staticcheck) && cd hack/release && $$staticcheck ./...

.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities in what the programs call. Needs the network, and says so.
	hack/vulncheck.sh

# What the image is called, which says where it is pushed to, and where it is written.
IMAGE ?= hekla:$(VERSION)
DIST ?= dist
release = cd hack/release && go run . $(1) --root=$(CURDIR) --version=$(VERSION) --out=$(abspath $(DIST)) --name=$(IMAGE) --links="$(NAMES)"

.PHONY: image
image: ## Write the image for amd64 and arm64 into dist/, without a container engine.
	$(call release,image)

.PHONY: push
push: ## Push the image that make image has written: make push IMAGE=registry.example.com/hekla:v1.
	$(call release,push)

# Where the files of a release will be published, and the private key that signs it: without them there is no manifest for
# krew, and no signature.
URL ?=
KEY ?=
PUBLIC_KEY ?=

.PHONY: release
release: ## Write all files of a release into dist/, and check them: make release VERSION=v1.2.3 URL=https://example.com/v1.2.3 KEY=key.pem.
	$(call release,all) --url=$(URL)
	$(if $(KEY),$(call release,sign) --key=$(abspath $(KEY)))
	$(call release,check)

.PHONY: check-release
check-release: ## Check the files of a release in dist/, and its signatures: make check-release PUBLIC_KEY=key.pub.
	$(call release,check) $(if $(PUBLIC_KEY),--key=$(abspath $(PUBLIC_KEY)))

.PHONY: generate
generate: ## Regenerate deepcopy, clients, CRDs and the installer.
	hack/generate.sh

.PHONY: check-generated
check-generated: generate ## Fail if what is generated is stale.
	git diff --exit-code -- pkg/apis pkg/client installer
	@test -z "$$(git status --porcelain -- pkg/apis pkg/client installer)" || { git status --short -- pkg/apis pkg/client installer; exit 1; }

.PHONY: web
web: ## Rebuild the web page, after a change of web. Needs Node 20 or newer.
	cd web && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error && npm run --silent build

.PHONY: check-web
check-web: web ## Fail if the web page in internal/web/dist is stale, or its source is not formatted.
	cd web && npm run --silent check
	git diff --exit-code --stat -- internal/web/dist
	@test -z "$$(git status --porcelain -- internal/web/dist)" || { git status --short -- internal/web/dist; exit 1; }

.PHONY: bench
bench: build ## Run the benchmarks: decisions in process; bindings, waits, pods of Jobs, and admissions on a local cluster.
	go test -run '^$$' -bench . -benchmem ./pkg/... ./internal/... ./test/guarantees
	bin/hekla bench
	bin/hekla bench latency
	bin/hekla bench restart
	bin/hekla bench jobs
	bin/hekla bench workloads

.PHONY: demo
demo: build ## Bring up a local cluster and watch gangs wait and start.
	bin/hekla demo

.PHONY: clean-demo
clean-demo: build ## Remove the cluster of the demo.
	bin/hekla down

.PHONY: help
help: ## Show this.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 20
