# The short way to everything. Each target first sees to what it needs (tools/bootstrap), and a
# second call does nothing twice.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# ninja and ctest share out the work.
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory --no-builtin-rules

BUILD_TYPE ?= Release
PREFIX ?= /usr/local
# A file that includes ATen takes up to 2 GB to compile, so memory counts as much as cores.
JOBS ?= $(shell cores=$$(nproc); room=$$(awk '/MemAvailable/ {print int($$2 / 2000000)}' /proc/meminfo); \
  room=$${room:-$$cores}; echo $$((room < 1 ? 1 : room < cores ? room : cores)))
TEST_JOBS ?= 2
# What `make bench` measures on.
DEVICE ?= cpu
# Further arguments for CMake, such as CONFIGURE=-DGALA_WARNINGS_AS_ERRORS=ON.
CONFIGURE ?=
# Arguments for ctest, such as ARGS='-R Gala' or ARGS='-L unit'.
ARGS ?=

CTEST := OMP_NUM_THREADS=1 ctest --output-on-failure --parallel $(TEST_JOBS)
# LibTorch is not built with the sanitizers: what it keeps until exit looks like a leak, and
# containers that cross its border look overflown.
ASAN_ENV := ASAN_OPTIONS=detect_leaks=0:detect_container_overflow=0 UBSAN_OPTIONS=print_stacktrace=1
# LibTorch and OpenMP are not built with the thread sanitizer either: cmake/thread_sanitizer.supp says what it cannot
# see of them.
TSAN_ENV := TSAN_OPTIONS=suppressions=$(CURDIR)/cmake/thread_sanitizer.supp:ignore_noninstrumented_modules=1
# How long `make fuzz` runs each target, and which (all).
FUZZ_SECONDS ?= 600
FUZZ ?=

##@ Use

.PHONY: demo
demo: build ## A model fails under shifting data, and adapts before your eyes
	@build/cli/gala demo --out build/demo

.PHONY: build
build: build/build.ninja ## Build the program: build/cli/gala
	@cmake --build build --parallel $(JOBS) --target gala_cli

.PHONY: install
install: build ## Install library, headers and program below PREFIX (default /usr/local)
	@cmake --install build --prefix "$(PREFIX)"

##@ Develop

.PHONY: test
test: export GALA_BROWSER := 1
test: all ## Build everything and run every test (ARGS='-R Gala' for some)
	@$(CTEST) --test-dir build $(ARGS)

.PHONY: all
all: build/build.ninja ## Build library, program and tests
	@cmake --build build --parallel $(JOBS)

.PHONY: asan
asan: build-asan/build.ninja ## The unit tests under AddressSanitizer and UBSan (build-asan/)
	@$(ASAN_ENV) cmake --build build-asan --parallel $(JOBS) --target gala_unit_tests
	@$(ASAN_ENV) $(CTEST) --test-dir build-asan -L unit $(ARGS)

.PHONY: tsan
tsan: build-tsan/build.ninja ## What works in several threads under ThreadSanitizer (build-tsan/)
	@$(TSAN_ENV) cmake --build build-tsan --parallel $(JOBS) --target gala_thread_tests
	@$(TSAN_ENV) $(CTEST) --no-tests=error --test-dir build-tsan -R '^(Loader|RecordingTest|Claims|Store|RunnerTest|ProcessGroup|Rendezvous)' $(ARGS)
	@$(TSAN_ENV) OMP_NUM_THREADS=2 ctest --output-on-failure --no-tests=error --test-dir build-tsan -R '^Stepper' $(ARGS)

.PHONY: fuzz
fuzz: export GALA_FUZZ := 1
fuzz: export CXX := clang++
fuzz: deps ## Feed every reader of files damaged ones, with libFuzzer (FUZZ_SECONDS=600 each; FUZZ='npy png')
	@tools/configure build-fuzz -DCMAKE_BUILD_TYPE=RelWithDebInfo -DGALA_FUZZ=ON -DGALA_TESTS=OFF -DGALA_CUDA=OFF \
	  -DCMAKE_CXX_FLAGS_RELWITHDEBINFO='-O1 -g1' $(CONFIGURE)
	@cmake --build build-fuzz --parallel $(JOBS) --target $(if $(FUZZ),$(addprefix gala_fuzz_,$(FUZZ)),gala_fuzz)
	@fuzz/run build-fuzz $(FUZZ_SECONDS) $(FUZZ)

.PHONY: bench
bench: export GALA_BENCH := 1
bench: build/build.ninja ## Time a step beside its floor and plain PyTorch (DEVICE=cpu or cuda); minutes
	@cmake build -DGALA_BENCHMARKS=ON >/dev/null
	@cmake --build build --parallel $(JOBS) --target gala_bench_step gala_bench_growth gala_bench_method
	@bench/run --device $(DEVICE) --build build --python "$$([ -x .venv/bin/python ] && echo .venv/bin/python || echo python3)"
	@build/bench/gala_bench_growth $(DEVICE) build/growth.json
	@build/bench/gala_bench_method $(DEVICE) build/methods.json

.PHONY: format
format: deps ## Format every C++ file in place
	@tools/check-format --fix

.PHONY: check
check: build ## Check format, include order and docs; seconds
	@tools/check-format
	@tools/check-includes
	@tools/check-docs --program build/cli/gala
	@tools/refresh-results --check build/cli/gala

.PHONY: results
results: build ## Write the tables of the committed records into the READMEs
	@tools/refresh-results build/cli/gala

.PHONY: tidy
tidy: build-tidy/build.ninja ## clang-tidy over the sources (minutes; FILES='gala/base/spec.cpp' for some)
	@tools/tidy build-tidy $(FILES)

##@ Care

.PHONY: deps
deps: ## Install what is missing: packages, .venv, LibTorch
	@tools/bootstrap

.PHONY: clean
clean: ## Remove what was built; .venv and .deps stay
	@rm -rf build build-asan build-fuzz build-tidy build-tsan

.PHONY: distclean
distclean: clean ## Remove what was installed here, too
	@rm -rf .venv .deps

.PHONY: help
help: ## This page
	@awk 'BEGIN { \
	    bold = ENVIRON["NO_COLOR"] == "" && ENVIRON["GALA_TERMINAL"] ? "\033[1m" : ""; \
	    blue = bold == "" ? "" : "\033[36m"; plain = bold == "" ? "" : "\033[0m"; \
	    print bold "gala" plain ": classifiers that adapt to what they see, one layer at a time"; } \
	  /^##@/ { print "\n" bold substr($$0, 5) plain } \
	  /^[a-z]+:.*## / { name = $$1; sub(/:.*/, "", name); sub(/.*## /, ""); \
	    printf "  %smake %-10s%s %s\n", blue, name, plain, $$0 } \
	  END { print "\nStart with " bold "make demo" plain ", then " bold "make test" plain "." }' \
	  $(MAKEFILE_LIST)

help: export GALA_TERMINAL := $(shell [ -t 1 ] && echo 1)

# Configured once; ninja itself notices changed CMake files. The prefix is compared, so that another
# LibTorch leads to a fresh folder.
.PHONY: FORCE
build/build.ninja build-asan/build.ninja build-tidy/build.ninja build-tsan/build.ninja: deps
build/build.ninja: FORCE
	@tools/configure build -DCMAKE_BUILD_TYPE=$(BUILD_TYPE) $(CONFIGURE)

build-asan/build.ninja: FORCE
	@tools/configure build-asan -DCMAKE_BUILD_TYPE=RelWithDebInfo -DGALA_SANITIZE=ON \
	  -DCMAKE_CXX_FLAGS_RELWITHDEBINFO='-O1 -g1' $(CONFIGURE)

build-tsan/build.ninja: FORCE
	@tools/configure build-tsan -DCMAKE_BUILD_TYPE=RelWithDebInfo -DGALA_SANITIZE_THREADS=ON -DGALA_CUDA=OFF \
	  -DCMAKE_CXX_FLAGS_RELWITHDEBINFO='-O1 -g1' $(CONFIGURE)

build-tidy/build.ninja: FORCE
	@tools/configure build-tidy -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
	  -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DCMAKE_CXX_COMPILER_LAUNCHER=
