"""Packs the wheel for `cargo xtask dist`, with the same bytes for the same files.

wheel.py VERSION PLATFORM EPOCH OUT PROGRAM EXTENSION LICENCES
"""

import base64
import hashlib
import pathlib
import sys
import time
import zipfile

METADATA = """Metadata-Version: 2.4
Name: windlass
Version: {version}
Summary: SQL Server's BACKUP and RESTORE for SQLite databases
License-Expression: MIT OR Apache-2.0
{licences}Classifier: Environment :: Console
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Classifier: Topic :: Database
Classifier: Topic :: System :: Archiving :: Backup
Classifier: Typing :: Typed
Requires-Python: >=3.8
Description-Content-Type: text/markdown

{readme}"""

WHEEL = """Wheel-Version: 1.0
Generator: windlass xtask
Root-Is-Purelib: false
Tag: py3-none-{platform}
"""


def main():
    version, platform, epoch, out, program, extension, third_parties = sys.argv[1:]
    here = pathlib.Path(__file__).parent
    root = here.parent.parent
    info = f"windlass-{version}.dist-info"
    readme = (here / "README.md").read_text()
    licences = {
        "LICENSE-MIT": root / "LICENSE-MIT",
        "LICENSE-APACHE": root / "LICENSE-APACHE",
        "THIRD-PARTY-LICENSES.txt": pathlib.Path(third_parties),
    }
    metadata = METADATA.format(
        version=version,
        licences="".join(f"License-File: {name}\n" for name in licences),
        readme=readme,
    )
    files = {
        "windlass/__init__.py": versioned((here / "windlass/__init__.py").read_text(), version),
        "windlass/__main__.py": (here / "windlass/__main__.py").read_bytes(),
        "windlass/py.typed": (here / "windlass/py.typed").read_bytes(),
        "windlass/libwindlass.so": pathlib.Path(extension).read_bytes(),
        f"windlass-{version}.data/scripts/windlass": pathlib.Path(program).read_bytes(),
        f"{info}/METADATA": metadata.encode(),
        f"{info}/WHEEL": WHEEL.format(platform=platform).encode(),
        **{f"{info}/licenses/{name}": path.read_bytes() for name, path in licences.items()},
    }
    record = ""
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(content)}\n"
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()

    path = pathlib.Path(out) / f"windlass-{version}-py3-none-{platform}.whl"
    moment = time.gmtime(int(epoch))[:6]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, date_time=moment)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
            wheel.writestr(entry, content)


def versioned(module, version):
    line = '__version__ = "unpacked"\n'
    if module.count(line) != 1:
        sys.exit(f"wheel.py: __init__.py must have the line {line!r} once")
    return module.replace(line, f'__version__ = "{version}"\n').encode()


main()
