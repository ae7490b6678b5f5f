#!/bin/sh
# Makes the user and the folders of the units. Nothing is started: which databases to back up is not known yet.
set -e
if ! getent passwd windlass >/dev/null; then
    # Where systemd is absent, as in containers, the same by hand.
    if command -v systemd-sysusers >/dev/null; then
        systemd-sysusers windlass.conf
    elif getent group windlass >/dev/null; then
        useradd --system --gid windlass --home-dir /srv/windlass --shell /usr/sbin/nologin windlass
    else
        useradd --system --user-group --home-dir /srv/windlass --shell /usr/sbin/nologin windlass
    fi
fi
# A folder that is there already, or a link to one, is somebody's: its owner and mode stay.
for folder in /srv/windlass /srv/backup; do
    if [ ! -e "$folder" ]; then
        install -d -m 0700 -o windlass -g "$(id --group windlass)" "$folder"
    fi
done
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
fi
