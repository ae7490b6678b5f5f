#!/bin/sh
# Makes the user and the folders of the units. Nothing is started: which databases to back up is not known yet.
set -e
# Where systemd is absent, as in containers, the same by hand.
if command -v systemd-sysusers >/dev/null; then
    systemd-sysusers windlass.conf
elif ! grep -q '^windlass:' /etc/passwd; then
    useradd --system --home-dir /srv/windlass --shell /usr/sbin/nologin windlass
fi
if command -v systemd-tmpfiles >/dev/null; then
    systemd-tmpfiles --create windlass.conf
else
    install -d -m 0700 -o windlass -g windlass /srv/windlass /srv/backup
fi
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
fi
