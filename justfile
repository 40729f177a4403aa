# Kindred's recipes: plain commands, which can be typed without `just` as well.

# List the recipes
default:
    @just --list

# Serve the built-in model on 127.0.0.1:8080; arguments go to kindred: just run --listen 127.0.0.1:0
run *arguments:
    cargo run --release -- {{ arguments }}

# Ask the built-in model, line by line; arguments go to kindred console
console *arguments:
    cargo run --release -- console {{ arguments }}

# All tests of all crates; arguments go to cargo: just test --test integration http::
test *arguments:
    cargo test --workspace {{ arguments }}

# Formatting and clippy, without changing anything; a warning is an error
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings

# Licences, banned crates and sources of the dependencies, offline; needs cargo-deny installed
deny:
    cargo deny --offline check licenses bans sources

# The CPU engine's benchmark; compare ratios within one run
bench *arguments:
    cargo bench -p cpu-core --bench search {{ arguments }}

# All kernels, and all that can be tested of the feature cuda on this machine; needs nvcc
test-cuda *arguments:
    cargo test -p gpu-core --features cuda {{ arguments }}

# All kernels for all architectures; needs nvcc
check-kernels:
    scripts/check-kernels

# Everything for a machine with a GPU, into staged/; there: staged/run-gpu
stage-gpu *arguments:
    scripts/stage-gpu {{ arguments }}

# A running service against openapi.yaml: requests that schemathesis makes up
check-openapi *arguments:
    scripts/check-openapi {{ arguments }}

# The documentation of the code, without warnings; then the documents' commands and links
docs:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps
    cargo test -p server --test integration links::
    cargo test -p server --test conditional docs::
    cargo test -p server --test conditional examples::

# What can be checked of docker/ without pulling an image; needs root on Debian 12 (docs/containers.md)
check-containers *arguments:
    scripts/check-containers {{ arguments }}

# The explorer in a real Chromium; pictures of it go to target/screenshots
check-explorer *arguments:
    scripts/check-explorer {{ arguments }}

# Everything at once for a while, and nothing may fail; needs wrk and a release build
soak *arguments:
    tests/load/soak {{ arguments }}

# The gate that every change passes
ci:
    bash .ci/run
