//! Installs each artefact where nothing of Windlass is, and backs up, verifies and restores there.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Release;
use super::build::Target;
use crate::run::execute;
use crate::run::output;

/// A table with enough rows for several chunks, in a file that no program has open.
const DATABASE: &str = "import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute('CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT)')
rows = ((i, 'row %d ' % i * 20) for i in range(30000))
db.executemany('INSERT INTO t VALUES (?, ?)', rows)
db.commit()
";

/// Tries the artefacts for this machine's processor.
pub(super) fn run(release: &Release, host: Target) -> Result<(), String> {
    let folder = release.work.join("check");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let database = folder.join("app.db");
    output(
        Command::new("python3")
            .args(["-c", DATABASE])
            .arg(&database),
    )?;
    wheel(release, host, &folder)?;
    if let Err(reason) = output(Command::new("contrib/package/try.sh").arg("--possible")) {
        println!(
            "== WARNING: THE ARCHIVE AND THE PACKAGES WERE NOT TRIED: no root can be made here"
        );
        return match release.is_rehearsal {
            true => Ok(()),
            false => Err(reason),
        };
    }
    archive(release, host, &folder)?;
    let (version, name) = (&release.version, host.name());
    let deb = format!("windlass_{version}_{}.deb", host.debian());
    package(release, &deb, &database, "dpkg -i", "dpkg -r")?;
    // The packages of this machine are not in rpm's own list, so that it knows of no C library.
    let rpm = format!("windlass-{version}-1.{name}.rpm");
    package(
        release,
        &rpm,
        &database,
        "rpm -U --nodeps --replacepkgs",
        "rpm -e",
    )
}

fn package(
    release: &Release,
    name: &str,
    database: &Path,
    install: &str,
    remove: &str,
) -> Result<(), String> {
    let mut command = Command::new("contrib/package/try.sh");
    command.arg(release.out.join(name)).arg(database);
    execute(&format!("trying {name}"), command.args([install, remove]))
}

/// The wheel in a virtual environment, without any other package where `sqlite3` can load extensions.
fn wheel(release: &Release, host: Target, folder: &Path) -> Result<(), String> {
    let wheel = find(&release.out, |name| {
        name.starts_with("windlass-") && name.ends_with(&format!("{}.whl", host.name()))
    })?;
    let environment = folder.join("venv");
    let loads = "import sqlite3; sqlite3.Connection.enable_load_extension";
    let python = ["/usr/bin/python3", "python3"]
        .into_iter()
        .find(|python| output(Command::new(python).args(["-c", loads])).is_ok())
        .ok_or("no Python with loadable extensions is here: apt-get install python3-venv")?;
    output(Command::new(python).args(["-m", "venv"]).arg(&environment))?;
    let pip = environment.join("bin/pip");
    let options = ["install", "--quiet", "--no-index", "--no-deps"];
    output(Command::new(pip).args(options).arg(wheel))?;
    let mut command = Command::new(environment.join("bin/python"));
    // Isolated: the folder of the script has the package, too.
    command.args(["-I", "contrib/python/try.py"]).arg(folder);
    execute("trying the wheel", &mut command)
}

/// The archive's program in a root with the C library and nothing else.
fn archive(release: &Release, host: Target, folder: &Path) -> Result<(), String> {
    println!("== trying the archive");
    let root = folder.join("root");
    let data = root.join("srv");
    fs::create_dir_all(&data).map_err(|error| format!("{}: {error}", data.display()))?;
    let name = format!("windlass-{}-{}-linux.tar.gz", release.version, host.name());
    let mut unpack = Command::new("tar");
    unpack.args(["--strip-components=1", "-xf"]);
    output(unpack.arg(release.out.join(name)).arg("-C").arg(&root))?;
    let program = root.join("usr/bin/windlass");
    for library in libraries(release, &program)? {
        let to = root.join(library.strip_prefix("/").unwrap_or(&library));
        let parent = to.parent().unwrap_or(&root);
        fs::create_dir_all(parent)
            .and_then(|()| fs::copy(&library, &to))
            .map_err(|error| format!("{}: {error}", library.display()))?;
    }
    let database = data.join("app.db");
    fs::copy(folder.join("app.db"), &database)
        .map_err(|error| format!("{}: {error}", database.display()))?;
    let run = |arguments: &[&str]| {
        // Without a PATH, it is not looked for there.
        let mut command = Command::new("/usr/sbin/chroot");
        command.arg(&root).arg("/usr/bin/windlass").args(arguments);
        let outcome = output(command.env_clear().env("HOME", "/srv"));
        outcome.map(|words| print!("{words}"))
    };
    let zstd = ["--compress", "zstd:low"];
    run(&[
        &["backup", "/srv/app.db", "--to", "/srv/app.bak"],
        &zstd[..],
    ]
    .concat())?;
    run(&["verify", "/srv/app.bak"])?;
    run(&["restore", "/srv/app.bak", "--to", "/srv/copy.db"])?;
    match fs::read(&database).ok() == fs::read(data.join("copy.db")).ok() {
        true => Ok(()),
        false => Err("the archive's program restored something else".to_owned()),
    }
}

/// The libraries that a program needs, as the loader finds them on this machine.
fn libraries(release: &Release, program: &Path) -> Result<Vec<PathBuf>, String> {
    let list = output(Command::new("ldd").arg(program))?;
    let path = |line: &str| {
        line.split_whitespace()
            .find(|word| word.starts_with('/'))
            .map(PathBuf::from)
    };
    let found: Vec<_> = list.lines().filter_map(path).collect();
    let is_of_c = |path: &PathBuf| {
        let name = path.file_name().map(OsStr::to_string_lossy);
        let name = name.unwrap_or_default();
        let heads = [
            "libc.",
            "libm.",
            "libdl.",
            "libpthread.",
            "librt.",
            "ld-linux",
        ];
        // The system's own linker takes it from there.
        let is_unwinder = release.is_rehearsal && name.starts_with("libgcc_s.");
        is_unwinder || heads.iter().any(|head| name.starts_with(head))
    };
    match found.iter().find(|path| !is_of_c(path)) {
        None => Ok(found),
        Some(other) => Err(format!(
            "the program needs {}, which is not of the C library",
            other.display()
        )),
    }
}

fn find(folder: &Path, is_it: impl Fn(&str) -> bool) -> Result<PathBuf, String> {
    super::artefacts(folder)?
        .into_iter()
        .find(|name| is_it(name))
        .map(|name| folder.join(name))
        .ok_or_else(|| format!("{}: the artefact is missing", folder.display()))
}
