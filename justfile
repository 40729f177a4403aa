# Kindred's recipes: plain commands that also work without `just`.

# List the recipes
default:
    @just --list

# Serve the built-in model on 127.0.0.1:8080; arguments go to kindred: just run --listen 127.0.0.1:0
run *arguments:
    cargo run --release -- {{ arguments }}

# Query the built-in model, line by line; arguments go to kindred console
console *arguments:
    cargo run --release -- console {{ arguments }}

# All tests of all crates, with all features; arguments go to cargo: just test --test integration http::
test *arguments:
    scripts/test {{ arguments }}

# The CPU time of requests against its account, with an optimised program of the default features
account:
    scripts/build-default target/gate/kindred
    TEST_KINDRED=$PWD/target/gate/kindred scripts/test --test measured -- --ignored account::

# Tests of the program with the default features: its account, its errors, its image
test-default: account
    TEST_KINDRED=$PWD/target/gate/kindred scripts/test --test integration -- --ignored defaults::
    TEST_KINDRED=$PWD/target/gate/kindred scripts/test --test conditional -- containers::

# Formatting, clippy, and warnings of the code's documentation, without changing anything; a warning is an error
lint:
    cargo fmt --all --check
    RUSTC_WORKSPACE_WRAPPER=$PWD/scripts/lint-and-document scripts/test --no-run --bins --tests --benches --examples

# Benchmark the CPU engine; compare ratios within one run
bench *arguments:
    cargo bench -p cpu-core --bench search {{ arguments }}

# Compile all kernels, and test the cuda feature as far as possible on this machine; needs nvcc
test-cuda *arguments:
    cargo test -p gpu-core -p report --features cuda {{ arguments }}

# Compile all kernels for all architectures; needs nvcc
check-kernels:
    scripts/check-kernels

# Build everything for a machine with a GPU into staged/; there, run staged/run-gpu
stage-gpu *arguments:
    scripts/stage-gpu {{ arguments }}

# Test a running service against openapi.yaml with schemathesis
check-openapi *arguments:
    scripts/check-openapi {{ arguments }}

# Build the code's documentation, then test the documents' commands and links
docs:
    cargo doc --workspace --no-deps
    cargo test -p cli --test integration links::
    cargo test -p cli --test conditional docs::
    cargo test -p cli --test conditional examples::

# Check docker/ as far as possible without pulling images; needs root on Debian 12 (docs/containers.md)
check-containers *arguments:
    scripts/check-containers {{ arguments }}

# Test the explorer in a real Chromium; screenshots go to target/screenshots
check-explorer *arguments:
    scripts/check-explorer {{ arguments }}

# Build the TypeScript client and test it, in Node.js and Chromium
check-typescript *arguments:
    scripts/check-typescript {{ arguments }}

# Build the Python package's module and test it
check-python *arguments:
    scripts/check-python {{ arguments }}

# Check the Helm chart, without a cluster
check-helm *arguments:
    scripts/check-helm {{ arguments }}

# Test the simulation, capacity planning and the drill
check-planning *arguments:
    scripts/check-planning {{ arguments }}

# Type-check for macOS and Windows, without running anything there; arguments are targets
check-platforms *targets:
    scripts/check-platforms {{ targets }}

# Run tests for ARM under emulation, and compare answers with this machine's; parts as arguments: just check-arm cpu-core bits
check-arm *arguments:
    scripts/check-arm {{ arguments }}

# Count the instructions of the scan per row, component and query, on ARM and x86-64
count-instructions *arguments:
    scripts/count-instructions {{ arguments }}

# Disturb three replicas behind HAProxy and Envoy; no request may fail
check-balancers *arguments:
    scripts/check-balancers {{ arguments }}

# Run all kinds of load at once; nothing may fail; needs wrk and a release build
soak *arguments:
    tests/load/soak {{ arguments }}

# The gate that every change passes
ci:
    bash .ci/run
