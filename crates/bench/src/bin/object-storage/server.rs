//! The store, and a proxy before it that spoils the network.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

pub(crate) const KEY: &str = "bench-key";
pub(crate) const SECRET: &str = "bench-secret";
pub(crate) const BUCKET: &str = "bench";

/// How long a program may take until it listens.
const PATIENCE: Duration = Duration::from_secs(30);

/// A program that ends with this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _killed = self.0.kill();
        let _ended = self.0.wait();
    }
}

/// The store.
pub(crate) struct Server {
    _running: Running,
    pub(crate) port: u16,
}

impl Server {
    pub(crate) fn start(program: &Path, folder: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(folder.join("store").join(BUCKET))?;
        let port = free_port()?;
        let child = Command::new(program)
            .args(["--port", &format!("127.0.0.1:{port}"), "posix"])
            .arg(folder.join("store"))
            .env("ROOT_ACCESS_KEY", KEY)
            .env("ROOT_SECRET_KEY", SECRET)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("{}: cargo xtask test builds it", program.display()))?;
        let running = Running(child);
        wait_for(port)?;
        Ok(Self {
            _running: running,
            port,
        })
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

/// toxiproxy before the store.
pub(crate) struct Proxy {
    _running: Running,
    control: u16,
    port: u16,
}

impl Proxy {
    pub(crate) fn start(program: &Path, server: u16) -> anyhow::Result<Self> {
        let (control, port) = (free_port()?, free_port()?);
        let child = Command::new(program)
            .args(["-host", "127.0.0.1", "-port", &control.to_string()])
            .args(["-seed", "1"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| program.display().to_string())?;
        let proxy = Self {
            _running: Running(child),
            control,
            port,
        };
        wait_for(control)?;
        let made = format!(
            r#"{{"name": "store", "listen": "127.0.0.1:{port}", "upstream": "127.0.0.1:{server}"}}"#
        );
        proxy.tell("/proxies", &made)?;
        wait_for(port)?;
        Ok(proxy)
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Answers come so much later.
    pub(crate) fn delay(&self, milliseconds: u32) -> anyhow::Result<()> {
        let toxic = format!(
            r#"{{"name": "late", "type": "latency", "stream": "downstream", "attributes": {{"latency": {milliseconds}}}}}"#
        );
        self.tell("/proxies/store/toxics", &toxic)
    }

    /// A share of connections is reset after a while. If that was said before, it is replaced.
    pub(crate) fn lose_connections(&self, share: f64) -> anyhow::Result<()> {
        let _was_none = self.ask("DELETE", "/proxies/store/toxics/lost", "");
        let toxic = format!(
            r#"{{"name": "lost", "type": "reset_peer", "stream": "downstream", "toxicity": {share}, "attributes": {{"timeout": 300}}}}"#
        );
        self.tell("/proxies/store/toxics", &toxic)
    }

    fn tell(&self, path: &str, body: &str) -> anyhow::Result<()> {
        self.ask("POST", path, body)
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> anyhow::Result<()> {
        let mut connection = TcpStream::connect(("127.0.0.1", self.control))?;
        write!(
            connection,
            "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer)?;
        ensure!(answer.starts_with("HTTP/1.1 20"), "toxiproxy: {answer}");
        Ok(())
    }
}

fn free_port() -> anyhow::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    Ok(listener.local_addr()?.port())
}

fn wait_for(port: u16) -> anyhow::Result<()> {
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        ensure!(begun.elapsed() < PATIENCE, "nothing listens on {port}");
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
