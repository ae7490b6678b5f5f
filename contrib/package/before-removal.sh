#!/bin/sh
# Stops the timers, but not in an upgrade ("upgrade" of dpkg, 1 of rpm). Databases, backups and the user stay.
set -e
if [ -d /run/systemd/system ] && [ "$1" != upgrade ] && [ "$1" != 1 ]; then
    systemctl disable --now windlass-backup.timer windlass-copies.timer
fi
