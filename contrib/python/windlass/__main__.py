"""`python -m windlass` is the program `windlass` that the package has installed."""

import importlib.metadata
import os
import sys


def main() -> None:
    # Where it lies depends on how the package was installed; its list of files knows.
    try:
        files = importlib.metadata.files("windlass") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == "windlass":
            program = str(file.locate())
            os.execv(program, [program, *sys.argv[1:]])
    sys.exit("python -m windlass: the program `windlass` is not among the files of this package: install its wheel")


main()
