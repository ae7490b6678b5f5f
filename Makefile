# Two commands do everything: `make demo` runs the main job, `make test` proves it.
# They need a Rust toolchain (1.89 or newer), a C and a C++ compiler, and the package registries; the
# tests also Chromium, the drivers of SQL Server for Python, Node.js, Java, Go and Rust, object stores, and Rust's libraries for
# macOS and Windows, which `make test` installs with apt-get, those languages' package managers and rustup when they are absent.

CARGO ?= cargo

.PHONY: demo fetch test build bench fuzz clean

demo: build
	$(CARGO) run --release --quiet --package windlass -- demo

# Also brings what is not compiled as a package: the sources of ISA-L.
fetch:
	$(CARGO) fetch --locked --quiet

build: fetch
	$(CARGO) build --release --package windlass

test: fetch
	$(CARGO) xtask test

bench: fetch
	$(CARGO) xtask bench

fuzz:
	$(CARGO) xtask fuzz --seconds 600

clean:
	$(CARGO) clean
