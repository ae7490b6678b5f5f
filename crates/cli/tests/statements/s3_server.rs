//! A store in memory on a loopback port, with faults on request: as much of the protocol of S3 as Windlass uses, or of
//! Google's, which is alike.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use jiff::tz::TimeZone;

pub(crate) const BUCKET: &str = "backups";
pub(crate) const KEY_ID: &str = "test-key-id";
pub(crate) const SECRET: &str = "hidden+secret/0123456789";
pub(crate) const TOKEN: &str = "hidden-session-token";

/// Shortest part but the last, as on S3.
const PART_BYTES_MIN: usize = 5 << 20;

/// Keys on a page of a listing: few, so that there are several pages.
const KEYS_PER_PAGE: usize = 20;

const LOCK_NAMES: [&str; 3] = [
    "x-amz-object-lock-mode",
    "x-amz-object-lock-retain-until-date",
    "x-amz-object-lock-legal-hold",
];

/// What happens to a request instead of its usual answer.
#[derive(Clone)]
pub(crate) enum Action {
    /// Answered with this status and code, without having been done.
    Refuse(u16, &'static str),
    /// Answered with this status and text, by something between the program and the store.
    Page(u16, &'static str),
    /// Done, but the connection is closed without an answer.
    LoseAnswer,
    /// The connection is closed in the middle of the request's body.
    CutRequest,
    /// The connection is closed in the middle of the answer's body.
    CutAnswer,
    /// Never answered.
    Hang,
    /// Answered with another address.
    Redirect(String),
    /// Answered as done, and lost: an object, or the content of a part.
    Forget,
    /// Another object takes the place of the requested one before the request is done.
    Replace(Vec<u8>),
}

/// A fault for the next requests that match.
#[derive(Clone)]
pub(crate) struct Fault {
    pub(crate) method: &'static str,
    /// A part of the path with its query.
    pub(crate) target: &'static str,
    /// Requests that match and are served before.
    pub(crate) after: usize,
    pub(crate) times: usize,
    pub(crate) action: Action,
}

#[derive(Clone)]
struct Object {
    bytes: Vec<u8>,
    tag: String,
    write_id: Option<String>,
    lock: Lock,
    /// Google's number of it.
    generation: u64,
    made: SystemTime,
}

/// The headers of a lock.
pub(crate) type Lock = BTreeMap<String, String>;

struct Upload {
    target: String,
    write_id: Option<String>,
    lock: Lock,
    parts: BTreeMap<u32, Vec<u8>>,
}

/// What the store does unlike others.
#[derive(Clone, Copy, PartialEq)]
enum Quirk {
    /// Takes locks, and says nothing of them.
    ForgetsLocks,
    /// Overwrites and deletes whatever the condition says.
    IgnoresConditions,
    /// Only deletes.
    DeletesWhatever,
    /// Listings have tags without quotation marks.
    ListsBareTags,
    /// Behind the last page of a listing comes the first one again.
    ListsInCircles,
}

#[derive(Default)]
struct State {
    objects: HashMap<String, Object>,
    uploads: HashMap<String, Upload>,
    faults: Vec<Fault>,
    /// Method and target of each request.
    requests: Vec<String>,
    /// Headers and targets of all requests, in which no secret may be.
    seen: String,
    made: u64,
    /// Speaks Google's protocol.
    is_google: bool,
    quirks: Vec<Quirk>,
    /// How long each request takes, how many are served now, and how many at most were.
    latency: Duration,
    served: usize,
    served_max: usize,
}

#[derive(Clone)]
pub(crate) struct Server {
    port: u16,
    state: Arc<Mutex<State>>,
}

struct Request {
    method: String,
    path: String,
    query: HashMap<String, String>,
    headers: HashMap<String, String>,
    body: Vec<u8>,
}

struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Answer {
    fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: body.into(),
        }
    }

    fn error(status: u16, code: &str) -> Self {
        let text = format!(
            "<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>In words: {code}.</Message>\
             <RequestId>R4711</RequestId></Error>"
        );
        Self::new(status, text)
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its number").port();
        let server = Self {
            port,
            state: Arc::default(),
        };
        let served = server.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let server = served.clone();
                std::thread::spawn(move || server.serve(&connection));
            }
        });
        server
    }

    /// A store of Google's kind.
    pub(crate) fn start_google() -> Self {
        let server = Self::start();
        server.state().is_google = true;
        server
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The URL of an object.
    pub(crate) fn url(&self, key: &str) -> String {
        format!("s3://127.0.0.1:{}/{BUCKET}/{key}", self.port)
    }

    /// Lets a program reach the server with its key.
    pub(crate) fn key_for<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let endpoint = format!("http://127.0.0.1:{}", self.port);
        command
            .env("AWS_ENDPOINT_URL", endpoint)
            .env("AWS_ACCESS_KEY_ID", KEY_ID)
            .env("AWS_SECRET_ACCESS_KEY", SECRET)
            .env("AWS_SESSION_TOKEN", TOKEN)
            .env("NO_PROXY", "127.0.0.1")
    }

    /// The same without its key.
    pub(crate) fn endpoint_for<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let keys = [
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
        ];
        let command = self.key_for(command);
        keys.into_iter()
            .fold(command, |command, key| command.env_remove(key))
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// No request fails from now on.
    pub(crate) fn forgive(&self) {
        self.state().faults.clear();
    }

    pub(crate) fn fail(&self, fault: Fault) {
        self.state().faults.push(fault);
    }

    /// Overwrites from now on, whatever the condition says.
    pub(crate) fn ignore_conditions(&self) {
        self.state().quirks.push(Quirk::IgnoresConditions);
    }

    /// Deletes from now on, whatever the condition says.
    pub(crate) fn delete_whatever(&self) {
        self.state().quirks.push(Quirk::DeletesWhatever);
    }

    /// Lists tags without quotation marks from now on.
    pub(crate) fn list_bare_tags(&self) {
        self.state().quirks.push(Quirk::ListsBareTags);
    }

    /// Lists pages again and again from now on.
    pub(crate) fn list_in_circles(&self) {
        self.state().quirks.push(Quirk::ListsInCircles);
    }

    /// Lets each request take some time from now on.
    pub(crate) fn slow(&self, latency: Duration) {
        self.state().latency = latency;
    }

    /// The most requests that were served at a time since the last call.
    pub(crate) fn served_at_once(&self) -> usize {
        std::mem::take(&mut self.state().served_max)
    }

    /// Makes an object older.
    pub(crate) fn age(&self, key: &str, by: Duration) {
        let mut state = self.state();
        let object = state.objects.get_mut(&format!("/{BUCKET}/{key}"));
        object.expect(key).made -= by;
    }

    /// The content of an object.
    pub(crate) fn content(&self, key: &str) -> Option<Vec<u8>> {
        let object = self
            .state()
            .objects
            .get(&format!("/{BUCKET}/{key}"))?
            .clone();
        Some(object.bytes)
    }

    pub(crate) fn put(&self, key: &str, bytes: &[u8]) {
        self.state()
            .put(&format!("/{BUCKET}/{key}"), bytes.to_vec(), None);
    }

    pub(crate) fn remove(&self, key: &str) {
        self.state().objects.remove(&format!("/{BUCKET}/{key}"));
    }

    /// The headers of an object's lock.
    pub(crate) fn lock(&self, key: &str) -> Lock {
        let state = self.state();
        let object = state.objects.get(&format!("/{BUCKET}/{key}"));
        object.map(|object| object.lock.clone()).unwrap_or_default()
    }

    /// Takes locks from now on, and keeps none.
    pub(crate) fn forget_locks(&self) {
        self.state().quirks.push(Quirk::ForgetsLocks);
    }

    pub(crate) fn unlock(&self, key: &str) {
        self.state()
            .set_lock(&format!("/{BUCKET}/{key}"), Lock::new());
    }

    pub(crate) fn keys(&self) -> Vec<String> {
        let state = self.state();
        let keys = state.objects.keys();
        let mut keys: Vec<String> = keys
            .map(|key| key.replacen(&format!("/{BUCKET}/"), "", 1))
            .collect();
        keys.sort();
        keys
    }

    pub(crate) fn unfinished_uploads(&self) -> usize {
        self.state().uploads.len()
    }

    /// Method and target of the requests since the last call.
    pub(crate) fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.state().requests)
    }

    /// Everything but the bodies of all requests.
    pub(crate) fn seen(&self) -> String {
        self.state().seen.clone()
    }

    fn serve(&self, connection: &TcpStream) {
        let mut reader = BufReader::new(connection);
        while let Some(done) = self.serve_one(&mut reader, connection) {
            if !done {
                let _closed = connection.shutdown(std::net::Shutdown::Both);
                return;
            }
        }
    }

    /// Serves a request; `Some(false)` if the connection is to be closed, `None` if it was.
    fn serve_one(&self, reader: &mut BufReader<&TcpStream>, mut to: &TcpStream) -> Option<bool> {
        let (mut request, length) = read_head(reader)?;
        if self.state().is_google {
            request.path = decoded(&request.path);
        }
        let target = self.note(&request);
        let action = self.state().fault(&request.method, &target);
        if let Some(Action::CutRequest) = action {
            let mut half = vec![0; length / 2];
            reader.read_exact(&mut half).ok()?;
            return Some(false);
        }
        request.body = vec![0; length];
        reader.read_exact(&mut request.body).ok()?;
        let cuts = matches!(action, Some(Action::CutAnswer));
        let latency = {
            let mut state = self.state();
            state.served += 1;
            state.served_max = state.served_max.max(state.served);
            state.latency
        };
        std::thread::sleep(latency);
        self.state().served -= 1;
        let answer = match action {
            Some(Action::Hang) => {
                std::thread::sleep(Duration::from_secs(600));
                return Some(false);
            }
            Some(Action::Refuse(status, code)) => Answer::error(status, code),
            Some(Action::Page(status, text)) => Answer::new(status, text),
            Some(Action::Redirect(to)) => {
                Answer::error(307, "TemporaryRedirect").with("location", to)
            }
            Some(Action::LoseAnswer) => {
                self.state().answer(&request);
                return Some(false);
            }
            Some(Action::Forget) => {
                let mut state = self.state();
                let answer = state.answer(&request);
                state.objects.remove(&request.path);
                state.forget_part(&request);
                answer
            }
            Some(Action::Replace(ref bytes)) => {
                let mut state = self.state();
                state.put(&request.path, bytes.clone(), None);
                state.answer(&request)
            }
            _ => self.state().answer(&request),
        };
        let is_head = request.method == "HEAD";
        let mut headers = answer.headers;
        headers.push(("x-amz-request-id", "R4711".to_owned()));
        if !is_head || answer.status != 200 {
            let length = if is_head { 0 } else { answer.body.len() };
            headers.push(("content-length", length.to_string()));
        }
        let headers: Vec<String> = headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let start = format!("HTTP/1.1 {} X\r\n", answer.status);
        let head = [start, headers.concat(), "\r\n".to_owned()].concat();
        to.write_all(head.as_bytes()).ok()?;
        let body = match (is_head, cuts) {
            (true, _) => &[][..],
            (false, true) => &answer.body[..answer.body.len() / 2],
            (false, false) => &answer.body,
        };
        to.write_all(body).ok()?;
        Some(!cuts)
    }

    fn note(&self, request: &Request) -> String {
        let mut query: Vec<String> = request
            .query
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        query.sort();
        let target = format!("{}?{}", request.path, query.join("&"));
        let mut state = self.state();
        state.requests.push(format!("{} {target}", request.method));
        let headers = format!("{} {target} {:?}\n", request.method, request.headers);
        state.seen.push_str(&headers);
        target
    }
}

/// A request without its body, and the body's length.
fn read_head(reader: &mut BufReader<&TcpStream>) -> Option<(Request, usize)> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let query = query.split('&').filter(|pair| !pair.is_empty());
    let query = query.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let length = headers.get("content-length").map_or("0", String::as_str);
    let length = length.parse().ok()?;
    let request = Request {
        method,
        path: path.to_owned(),
        query: query
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        headers,
        body: Vec::new(),
    };
    Some((request, length))
}

impl State {
    /// The fault for a request, if there is one.
    fn fault(&mut self, method: &str, target: &str) -> Option<Action> {
        let matches = |fault: &&mut Fault| {
            fault.times > 0 && fault.method == method && target.contains(fault.target)
        };
        let fault = self.faults.iter_mut().find(matches)?;
        if fault.after > 0 {
            fault.after -= 1;
            return None;
        }
        fault.times -= 1;
        Some(fault.action.clone())
    }

    fn put(&mut self, path: &str, bytes: Vec<u8>, write_id: Option<String>) -> String {
        self.made += 1;
        let tag = format!("\"tag-{}\"", self.made);
        let object = Object {
            bytes,
            tag: tag.clone(),
            write_id,
            lock: Lock::new(),
            generation: self.made,
            made: SystemTime::now(),
        };
        self.objects.insert(path.to_owned(), object);
        tag
    }

    /// The lock that a request asks for; it must be signed, and come with a checksum.
    fn lock(&self, request: &Request) -> Result<Lock, Answer> {
        let headers = request.headers.iter();
        let lock: Lock = headers
            .filter(|(name, _)| name.starts_with("x-amz-object-lock-"))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let has = |part: &str| request.headers.keys().any(|name| name.starts_with(part));
        let authorization = &request.headers["authorization"];
        let are_signed = lock
            .keys()
            .all(|name| authorization.contains(name.as_str()));
        let is_checked = has("x-amz-checksum-") || has("x-amz-sdk-checksum-algorithm");
        match lock.is_empty() || are_signed && is_checked {
            true if self.has(Quirk::ForgetsLocks) => Ok(Lock::new()),
            true => Ok(lock),
            false => Err(Answer::error(400, "InvalidRequest")),
        }
    }

    fn set_lock(&mut self, path: &str, lock: Lock) {
        if let Some(object) = self.objects.get_mut(path) {
            object.lock = lock;
        }
    }

    /// `PutObjectRetention`
    fn retain(&mut self, request: &Request) -> Answer {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        let element = |name: &str| {
            let (_, rest) = body.split_once(&format!("<{name}>"))?;
            Some(rest.split_once('<')?.0.to_owned())
        };
        let (Some(mode), Some(until), Some(object)) = (
            element("Mode"),
            element("RetainUntilDate"),
            self.objects.get_mut(&request.path),
        ) else {
            return Answer::error(400, "MalformedXML");
        };
        let lock = &mut object.lock;
        lock.insert("x-amz-object-lock-mode".to_owned(), mode);
        lock.insert("x-amz-object-lock-retain-until-date".to_owned(), until);
        Answer::new(200, "")
    }

    /// `GetObjectRetention`
    fn retention(&self, request: &Request) -> Answer {
        let object = self.objects.get(&request.path);
        let value = |name: &str| object?.lock.get(&format!("x-amz-object-lock-{name}"));
        match (value("mode"), value("retain-until-date")) {
            (Some(mode), Some(until)) => Answer::new(
                200,
                format!(
                    "<Retention><Mode>{mode}</Mode><RetainUntilDate>{until}</RetainUntilDate></Retention>"
                ),
            ),
            _ => Answer::error(404, "NoSuchObjectLockConfiguration"),
        }
    }

    fn answer(&mut self, request: &Request) -> Answer {
        let authorization = request.headers.get("authorization");
        let is_known = authorization.is_some_and(|given| match self.is_google {
            true => given.starts_with("Bearer ey") && given.matches('.').count() == 2,
            false => given.contains(&format!("={KEY_ID}/")),
        });
        if !is_known {
            return Answer::error(403, "InvalidAccessKeyId");
        }
        if request.path.trim_end_matches('/') == format!("/{BUCKET}") && request.method == "GET" {
            return match request.query.contains_key("uploads") {
                true => self.list_uploads(request),
                false => self.list(request),
            };
        }
        if !request.path.starts_with(&format!("/{BUCKET}/")) {
            return Answer::error(404, "NoSuchBucket");
        }
        if request.query.contains_key("retention") {
            return match request.method.as_str() {
                "PUT" => self.retain(request),
                _ => self.retention(request),
            };
        }
        let upload = request.query.get("uploadId");
        match (request.method.as_str(), upload) {
            ("HEAD" | "GET", _) => self.get(request),
            ("POST", None) => self.begin(request),
            ("PUT", Some(upload)) => self.part(request, upload),
            ("POST", Some(upload)) => self.complete(request, upload),
            ("DELETE", Some(upload)) => {
                self.uploads.remove(upload);
                Answer::new(204, "")
            }
            ("PUT", None) => {
                if self.must_not_exist(request) {
                    return Answer::error(412, "PreconditionFailed");
                }
                let lock = match self.lock(request) {
                    Ok(lock) => lock,
                    Err(refused) => return refused,
                };
                let tag = self.put(&request.path, request.body.clone(), write_id(request));
                self.set_lock(&request.path, lock);
                Answer::new(200, "")
                    .with("etag", tag)
                    .with("x-goog-generation", self.made.to_string())
            }
            ("DELETE", None) => {
                let is_kept = !self.has(Quirk::DeletesWhatever) && self.must_not_exist(request);
                if self.objects.contains_key(&request.path) && is_kept {
                    return Answer::error(412, "PreconditionFailed");
                }
                self.objects.remove(&request.path);
                Answer::new(204, "")
            }
            _ => Answer::error(405, "MethodNotAllowed"),
        }
    }

    fn has(&self, quirk: Quirk) -> bool {
        self.quirks.contains(&quirk)
    }

    /// Whether a condition forbids that there is this object, or none.
    fn must_not_exist(&self, request: &Request) -> bool {
        if self.has(Quirk::IgnoresConditions) {
            return false;
        }
        if self.is_google {
            let found = self.objects.get(&request.path);
            let found = found.map_or(0, |object| object.generation);
            let wanted = request.headers.get("x-goog-if-generation-match");
            return wanted.is_some_and(|wanted| *wanted != found.to_string());
        }
        if let Some(wanted) = request.headers.get("if-match") {
            let found = self.objects.get(&request.path);
            return found.is_none_or(|found| found.tag != *wanted);
        }
        let condition = request.headers.get("if-none-match");
        condition.is_some_and(|tag| tag == "*") && self.objects.contains_key(&request.path)
    }

    /// `ListObjectsV2`
    fn list(&self, request: &Request) -> Answer {
        let asked = |name: &str| decoded(request.query.get(name).map_or("", String::as_str));
        let (prefix, delimiter) = (asked("prefix"), asked("delimiter"));
        let token = asked("continuation-token");
        // The round is in front of the last key, so that each token is another one.
        let (round, after) = token.split_once('.').unwrap_or(("0", &token));
        let mut entries: BTreeMap<String, Option<&Object>> = BTreeMap::new();
        for (path, object) in &self.objects {
            let key = decoded(path.trim_start_matches(&format!("/{BUCKET}/")));
            let Some(rest) = key.strip_prefix(&prefix) else {
                continue;
            };
            match rest.split_once(&delimiter) {
                Some((folder, _)) if !delimiter.is_empty() => {
                    entries.insert(format!("{prefix}{folder}{delimiter}"), None);
                }
                _ => {
                    entries.insert(key.clone(), Some(object));
                }
            }
        }
        entries.retain(|key, _| key.as_str() > after);
        let quotation_mark = if self.has(Quirk::ListsBareTags) {
            ""
        } else {
            "&quot;"
        };
        let mut text = String::from("<ListBucketResult>");
        for (key, object) in entries.iter().take(KEYS_PER_PAGE) {
            let entry = match object {
                None => format!("<CommonPrefixes><Prefix>{key}</Prefix></CommonPrefixes>"),
                Some(object) => format!(
                    "<Contents><Key>{key}</Key><LastModified>2026-11-23T03:00:00.000Z</LastModified>\
                     <ETag>{}</ETag><Size>{}</Size></Contents>",
                    object.tag.replace('"', quotation_mark),
                    object.bytes.len()
                ),
            };
            text.push_str(&entry);
        }
        let next = match entries.keys().nth(KEYS_PER_PAGE - 1) {
            Some(last) if entries.len() > KEYS_PER_PAGE => Some(format!("{round}.{last}")),
            _ if self.has(Quirk::ListsInCircles) => {
                let round: u32 = round.parse().expect("a number");
                Some(format!("{}.", round + 1))
            }
            _ => None,
        };
        if let Some(next) = next {
            let next = format!("<NextContinuationToken>{next}</NextContinuationToken>");
            text.push_str(&next);
        }
        Answer::new(200, text + "</ListBucketResult>")
    }

    /// `ListMultipartUploads`
    fn list_uploads(&self, request: &Request) -> Answer {
        let prefix = decoded(request.query.get("prefix").map_or("", String::as_str));
        let mut text = String::from("<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>");
        for (id, upload) in &self.uploads {
            let path = upload.target.trim_start_matches(&format!("/{BUCKET}/"));
            let key = decoded(path);
            if key.starts_with(&prefix) {
                let entry = format!(
                    "<Upload><Key>{key}</Key><UploadId>{id}</UploadId>\
                     <Initiated>2026-11-23T03:00:00.000Z</Initiated></Upload>"
                );
                text.push_str(&entry);
            }
        }
        Answer::new(200, text + "</ListMultipartUploadsResult>")
    }

    fn get(&self, request: &Request) -> Answer {
        let Some(object) = self.objects.get(&request.path) else {
            return Answer::error(404, "NoSuchKey");
        };
        let wanted = request.headers.get("if-match");
        if wanted.is_some_and(|tag| *tag != object.tag) {
            return Answer::error(412, "PreconditionFailed");
        }
        let range = request.headers.get("range").and_then(|range| {
            let (start, end) = range.strip_prefix("bytes=")?.split_once('-')?;
            Some((start.parse::<usize>().ok()?, end.parse::<usize>().ok()? + 1))
        });
        let all = object.bytes.len();
        let answer = match range {
            Some((start, end)) if start < end && end <= all => {
                Answer::new(206, &object.bytes[start..end])
                    .with("content-range", format!("bytes {start}-{}/{all}", end - 1))
            }
            Some(_) => return Answer::error(416, "InvalidRange"),
            None if request.method == "HEAD" => {
                Answer::new(200, "").with("content-length", all.to_string())
            }
            None => Answer::new(200, object.bytes.clone()),
        };
        let made = Timestamp::try_from(object.made).expect("a time");
        let made = made.to_zoned(TimeZone::UTC);
        let answer = answer
            .with("etag", object.tag.clone())
            .with("x-goog-generation", object.generation.to_string())
            .with(
                "last-modified",
                made.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string(),
            );
        let answer = object.lock.iter().fold(answer, |answer, (name, value)| {
            let names = LOCK_NAMES.into_iter();
            let name = names.into_iter().find(|known| known == name);
            match name {
                Some(name) => answer.with(name, value.clone()),
                None => answer,
            }
        });
        match &object.write_id {
            Some(id) if self.is_google => answer.with("x-goog-meta-windlass-write-id", id.clone()),
            Some(id) => answer.with("x-amz-meta-windlass-write-id", id.clone()),
            None => answer,
        }
    }

    fn begin(&mut self, request: &Request) -> Answer {
        let lock = match self.lock(request) {
            Ok(lock) => lock,
            Err(refused) => return refused,
        };
        self.made += 1;
        let id = format!("upload-{}", self.made);
        let upload = Upload {
            target: request.path.clone(),
            write_id: write_id(request),
            lock,
            parts: BTreeMap::new(),
        };
        self.uploads.insert(id.clone(), upload);
        let text = format!(
            "<InitiateMultipartUploadResult><UploadId>{id}</UploadId></InitiateMultipartUploadResult>"
        );
        Answer::new(200, text)
    }

    fn part(&mut self, request: &Request, upload: &str) -> Answer {
        let Some(upload) = self.uploads.get_mut(upload) else {
            return Answer::error(404, "NoSuchUpload");
        };
        let number = request.query["partNumber"].parse().expect("a number");
        upload.parts.insert(number, request.body.clone());
        Answer::new(200, "")
            .with("etag", format!("\"part-{number}\""))
            .with("x-goog-generation", "1")
    }

    fn forget_part(&mut self, request: &Request) {
        let upload = request.query.get("uploadId");
        let upload = upload.and_then(|upload| self.uploads.get_mut(upload));
        if let (Some(upload), Some(number)) = (upload, request.query.get("partNumber")) {
            let number = number.parse().expect("a number");
            upload.parts.insert(number, Vec::new());
        }
    }

    fn complete(&mut self, request: &Request, id: &str) -> Answer {
        // Google's has no conditions here.
        if !self.is_google && self.must_not_exist(request) {
            return Answer::error(412, "PreconditionFailed");
        }
        let Some(upload) = self.uploads.remove(id) else {
            return Answer::error(404, "NoSuchUpload");
        };
        let named = String::from_utf8_lossy(&request.body)
            .matches("<Part>")
            .count();
        let mut parts = upload.parts.values().rev().skip(1);
        if named != upload.parts.len() || upload.target != request.path {
            return Answer::error(400, "InvalidPart");
        }
        if parts.any(|part| part.len() < PART_BYTES_MIN) {
            return Answer::error(400, "EntityTooSmall");
        }
        let bytes: Vec<u8> = upload.parts.into_values().flatten().collect();
        let tag = self.put(&request.path, bytes, upload.write_id);
        self.set_lock(&request.path, upload.lock);
        let text = format!(
            "<CompleteMultipartUploadResult><ETag>{tag}</ETag></CompleteMultipartUploadResult>"
        );
        Answer::new(200, text).with("x-goog-generation", self.made.to_string())
    }
}

/// Without `%20` and the like.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.bytes().next() {
        let byte = rest
            .strip_prefix('%')
            .and_then(|rest| u8::from_str_radix(rest.get(..2)?, 16).ok());
        let (byte, length) = byte.map_or((first, 1), |byte| (byte, 3));
        bytes.push(byte);
        rest = &rest[length..];
    }
    String::from_utf8(bytes).expect("a text")
}

fn write_id(request: &Request) -> Option<String> {
    let names = [
        "x-amz-meta-windlass-write-id",
        "x-goog-meta-windlass-write-id",
    ];
    let mut ids = names.iter().filter_map(|name| request.headers.get(*name));
    ids.next().cloned()
}
