#!/usr/bin/env python3
"""How long a backup locks out the writers of a database in rollback mode, beside `cp` and `sync` of it.

usage: lock_time.py WINDLASS DATABASE [PAIRS]

Run it in a folder with room for two more copies of the database. The pairs alternate in their order; the
database is in the page cache before each. A writer that asks every millisecond measures the lock from outside;
when it gets it, the backup has its copy and is ended.
"""

import os
import signal
import sqlite3
import statistics
import subprocess
import sys
import time

COPY, MEDIUM = "lock-time.copy", "lock-time.bak"


def warm(database):
    subprocess.run(["sync"], check=True)
    subprocess.run(["dd", "if=" + database, "of=/dev/null", "bs=4M", "status=none"], check=True)


def copied(database):
    begun = time.monotonic()
    subprocess.run(["cp", database, COPY], check=True)
    subprocess.run(["sync", COPY], check=True)
    seconds = time.monotonic() - begun
    os.unlink(COPY)
    return seconds


def locked(windlass, database):
    writer = sqlite3.connect(database, timeout=0, isolation_level=None)
    arguments = ["backup", database, "--to", MEDIUM, "--init", "--compress", "zstd:high"]
    backup = subprocess.Popen([windlass, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    first = None
    while True:
        try:
            writer.execute("BEGIN EXCLUSIVE")
            now = time.monotonic()
            writer.execute("ROLLBACK")
            if first is not None:
                break
            if backup.poll() is not None:
                sys.exit("the backup ended and was never seen to lock")
        except sqlite3.OperationalError:
            first = first or time.monotonic()
        time.sleep(0.001)
    backup.send_signal(signal.SIGTERM)
    backup.wait()
    return now - first


def main():
    windlass, database = sys.argv[1:3]
    pairs = int(sys.argv[3]) if len(sys.argv) > 3 else 9
    copies, locks = [], []
    for number in range(pairs):
        runs = [lambda: copies.append(copied(database)), lambda: locks.append(locked(windlass, database))]
        for run in runs if number % 2 == 0 else reversed(runs):
            warm(database)
            run()
        print(f"{number + 1}: cp and sync {copies[-1]:.2f} s, locked {locks[-1]:.2f} s", flush=True)
    ratios = statistics.median(locked / copied for copied, locked in zip(copies, locks))
    copy, lock = statistics.median(copies), statistics.median(locks)
    print(f"median of {pairs}: cp and sync {copy:.2f} s, locked {lock:.2f} s: {lock / copy:.2f} x; of the ratios {ratios:.2f}")
    if os.path.exists(MEDIUM):
        os.unlink(MEDIUM)


main()
