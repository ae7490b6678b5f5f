#!/bin/sh
# Stops the timers, but not in an upgrade ("upgrade" of dpkg, 1 of rpm). Databases, backups and the user stay.
set -e
if [ "$1" != upgrade ] && [ "$1" != 1 ] && command -v systemctl >/dev/null; then
    # Where no systemd runs, as in an image that is being built, there is nothing to stop.
    if [ -d /run/systemd/system ]; then
        systemctl stop windlass-backup.timer windlass-copies.timer || true
    fi
    systemctl disable windlass-backup.timer windlass-copies.timer || true
fi
