#!/bin/sh
# Installs a package in a copy of this system that only this script sees, and backs up, verifies and restores there.
# `cargo xtask dist --check` runs it as root: try.sh PACKAGE APP.DB INSTALL-COMMAND REMOVE-COMMAND
# try.sh --possible fails where such a copy cannot be made.
set -eu
if [ "${WINDLASS_TRY:-}" != inside ]; then
    export WINDLASS_TRY=inside
    exec unshare --mount --propagation private "$0" "$@"
fi
work=$(mktemp -d)
trap 'umount --recursive --lazy "$work" && rmdir "$work"' EXIT
# What changes goes to memory, and with it when the mounts end.
mount -t tmpfs tmpfs "$work"
mkdir "$work/upper" "$work/work" "$work/root"
mount -t overlay -o "lowerdir=/,upperdir=$work/upper,workdir=$work/work" overlay "$work/root"
mount --rbind /dev "$work/root/dev"
mount -t proc proc "$work/root/proc"
if [ "$1" = --possible ]; then
    chroot "$work/root" true
    exit
fi
mkdir -p "$work/root/try"
cp "$1" "$2" "$work/root/try"
cat >"$work/root/try/steps.sh" <<'STEPS'
set -eux
cd /try
test ! -e /usr/bin/windlass
$INSTALL "./$PACKAGE"
grep '^windlass:' /etc/passwd
test "$(stat -c '%U %a' /srv/windlass)" = 'windlass 700'
test -s /usr/share/man/man1/windlass-backup.1.gz
test -s /usr/share/man/man5/windlass-config.5.gz
test -s /usr/share/man/man7/windlass-tsql.7.gz
test -s /usr/share/doc/windlass/docs/cli.md
# As the user of the units, in the folders of the units.
cp app.db /srv/windlass/app.db
chown windlass /srv/windlass/app.db
setpriv --reuid windlass --regid windlass --clear-groups sh -euxc '
    cd /srv/backup
    export HOME=/srv/windlass
    windlass backup /srv/windlass/app.db --to app.bak --compress zstd:low
    windlass verify app.bak
    windlass restore app.bak --to copy.db
'
cmp app.db /srv/backup/copy.db
# A changed configuration and all data outlive the package.
echo '# changed' >>/etc/windlass/config.toml
# A folder of somebody else stays so.
chown nobody /srv/backup && chmod 2775 /srv/backup
$INSTALL "./$PACKAGE"
test "$(stat -c '%U %a' /srv/backup)" = 'nobody 2775'
tail -1 /etc/windlass/config.toml | grep changed
$REMOVE windlass
test ! -e /usr/bin/windlass
test -e /srv/backup/app.bak
STEPS
PACKAGE=$(basename "$1") INSTALL=$3 REMOVE=$4 chroot "$work/root" sh /try/steps.sh
