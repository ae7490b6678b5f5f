//! The package for Red Hat, SUSE and their kin, by `rpmbuild` from the tree: nothing is compiled.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use super::build::{GLIBC, Target};
use super::tree::Tree;
use super::{Release, read};
use crate::run::output;

/// Writes `windlass-VERSION-1.ARCH.rpm`.
pub(super) fn make(release: &Release, target: Target, tree: &Tree) -> Result<(), String> {
    if !crate::tools::is_there("rpmbuild") {
        return Err("rpmbuild is absent: apt-get install rpm".to_owned());
    }
    let folder = tree.0.with_file_name("rpm");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let file = folder.join("windlass.spec");
    fs::write(&file, spec(release, tree)?)
        .map_err(|error| format!("{}: {error}", file.display()))?;
    let mut command = Command::new("rpmbuild");
    command
        .args([
            "-bb",
            "--quiet",
            "--target",
            &format!("{}-linux", target.name()),
        ])
        .env("SOURCE_DATE_EPOCH", release.epoch.to_string())
        .arg("--define")
        .arg(format!("_topdir {}", folder.display()))
        .arg("--define")
        .arg(format!("_rpmdir {}", folder.display()))
        .arg(file);
    output(&mut command)?;
    let name = format!("windlass-{}-1.{}.rpm", release.version, target.name());
    let made = folder.join(target.name()).join(&name);
    fs::copy(&made, release.out.join(&name))
        .map(drop)
        .map_err(|error| format!("{}: {error}", made.display()))
}

/// Describes the package. The macros that would strip, compress or search the files are empty: they are as they shall be.
fn spec(release: &Release, tree: &Tree) -> Result<String, String> {
    let mut text = format!(
        "%global __os_install_post %{{nil}}\n\
         %global debug_package %{{nil}}\n\
         %global _build_id_links none\n\
         %global _buildhost reproducible\n\
         %global use_source_date_epoch_as_buildtime 1\n\
         %global clamp_mtime_to_source_date_epoch 1\n\
         %global _binary_payload w{}.xzdio\n\
         AutoReqProv: no\n\
         Name: windlass\n\
         Version: {}\n\
         Release: 1\n\
         Summary: SQL Server's BACKUP and RESTORE for SQLite databases\n\
         License: MIT OR Apache-2.0\n\
         Requires: glibc >= {GLIBC}\n\
         Requires(post): /usr/sbin/useradd\n\
         Recommends: ca-certificates\n\
         Provides: user(windlass)\n\
         %description\n\
         Full, differential and log backups of databases in use, verified, compressed and\n\
         encrypted; restores to a moment; a reader for backups of SQL Server.\n\
         %install\n\
         mkdir -p %{{buildroot}}\n\
         cp -a '{}/.' %{{buildroot}}/\n",
        release.level(6),
        release.version,
        tree.0.display(),
    );
    let mut add =
        |line: std::fmt::Arguments<'_>| writeln!(text, "{line}").map_err(|error| error.to_string());
    for (section, script) in [
        ("%post", "contrib/package/after-install.sh"),
        ("%preun", "contrib/package/before-removal.sh"),
    ] {
        add(format_args!("{section}\n{}", read(script)?))?;
    }
    add(format_args!("%files\n%defattr(-,root,root)"))?;
    for folder in [
        "/etc/windlass",
        "/usr/lib/windlass",
        "/usr/share/doc/windlass",
    ] {
        add(format_args!("%dir {folder}"))?;
    }
    for file in tree.files()? {
        let kind = match file.as_str() {
            config if config.starts_with("etc/") => "%config(noreplace) ",
            page if page.starts_with("usr/share/doc/") => "%doc ",
            _ => "",
        };
        add(format_args!("{kind}\"/{file}\""))?;
    }
    Ok(text)
}
