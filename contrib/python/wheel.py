"""Packs the wheel for `cargo xtask dist`, with the same bytes for the same files.

wheel.py VERSION PLATFORM EPOCH OUT PROGRAM EXTENSION LICENCES
"""

import base64
import hashlib
import pathlib
import sys
import time
import zipfile

METADATA = """Metadata-Version: 2.1
Name: windlass
Version: {version}
Summary: SQL Server's BACKUP and RESTORE for SQLite databases
License: MIT OR Apache-2.0
Requires-Python: >=3.8
Description-Content-Type: text/markdown

{readme}"""

WHEEL = """Wheel-Version: 1.0
Generator: windlass xtask
Root-Is-Purelib: false
Tag: py3-none-{platform}
"""


def main():
    version, platform, epoch, out, program, extension, licences = sys.argv[1:]
    here = pathlib.Path(__file__).parent
    root = here.parent.parent
    info = f"windlass-{version}.dist-info"
    readme = (here / "README.md").read_text()
    files = {
        "windlass/__init__.py": (here / "windlass/__init__.py").read_bytes(),
        "windlass/libwindlass.so": pathlib.Path(extension).read_bytes(),
        f"windlass-{version}.data/scripts/windlass": pathlib.Path(program).read_bytes(),
        f"{info}/METADATA": METADATA.format(version=version, readme=readme).encode(),
        f"{info}/WHEEL": WHEEL.format(platform=platform).encode(),
        f"{info}/licenses/LICENSE-MIT": (root / "LICENSE-MIT").read_bytes(),
        f"{info}/licenses/LICENSE-APACHE": (root / "LICENSE-APACHE").read_bytes(),
        f"{info}/licenses/THIRD-PARTY-LICENSES.txt": pathlib.Path(licences).read_bytes(),
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


main()
