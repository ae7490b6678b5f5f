//! The running requests as server-sent events.
//!
//! One task looks for all listeners, and only while there are any.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse as _, Response};
use serde_json::Value as Json;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use windlass_base::visible::json_escaped;
use windlass_instance::Instance;

use super::door::refuse;
use super::login::Visitor;
use super::route::{Web, read};
use super::running;
use crate::listen::Shared;

/// Listeners at once.
const LISTENERS: usize = 16;
/// Between two looks.
const INTERVAL: Duration = Duration::from_millis(500);
/// After so long without an event a comment is sent, so that a listener that is gone is noticed.
const SILENCE: Duration = Duration::from_secs(15);

/// What listeners are told.
#[derive(Debug)]
pub(super) struct Live {
    /// The requests as JSON.
    latest: watch::Sender<Arc<str>>,
    places: Arc<Semaphore>,
}

impl Live {
    /// Starts to look, on a runtime.
    pub(super) fn start(shared: &Shared, runtime: &Handle) -> io::Result<Self> {
        let (latest, _) = watch::channel(Arc::from("[]"));
        let instance = Arc::new(Mutex::new(shared.instance()?));
        runtime.spawn(look(latest.clone(), instance));
        Ok(Self {
            latest,
            places: Arc::new(Semaphore::new(LISTENERS)),
        })
    }
}

/// Publishes the requests while there are any, and once when there are none any more.
async fn look(latest: watch::Sender<Arc<str>>, instance: Arc<Mutex<Instance>>) {
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if latest.receiver_count() == 0 {
            continue;
        }
        let instance = Arc::clone(&instance);
        let found = tokio::task::spawn_blocking(move || {
            let instance = instance.lock().unwrap_or_else(PoisonError::into_inner);
            text(instance.requests_now())
        });
        let Ok(found) = found.await else {
            continue;
        };
        let is_news = &*found != "[]" || **latest.borrow() != *found;
        if is_news {
            latest.send_replace(found.into());
        }
    }
}

/// The requests, each with what the page says about it.
fn text(mut requests: Json) -> String {
    for request in requests.as_array_mut().into_iter().flatten() {
        let shown = running::shown(request);
        request["shown"] = Json::String(shown);
    }
    json_escaped(&requests.to_string()).into_owned()
}

/// A listener that logged in asks again after this time, with its password.
const LOGIN_TIME: Duration = Duration::from_secs(60);

/// What a listener has.
struct Listener {
    until: Option<Instant>,
    latest: watch::Receiver<Arc<str>>,
    /// What runs when it comes.
    first: Option<String>,
    _place: OwnedSemaphorePermit,
}

/// Answers with the requests that run, whenever that changes.
pub(super) async fn events(
    State(web): State<Arc<Web>>,
    Extension(visitor): Extension<Visitor>,
) -> Result<Response, Response> {
    let place = Arc::clone(&web.live.places).try_acquire_owned();
    let place = place.map_err(|_| {
        refuse(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many listen already: reload the page instead",
        )
    })?;
    let mut latest = web.live.latest.subscribe();
    latest.mark_unchanged();
    let first = read(&web, |instance| Ok(text(instance.requests_now()))).await?;
    let listener = Listener {
        until: visitor.must_log_in.then(|| Instant::now() + LOGIN_TIME),
        latest,
        first: Some(first),
        _place: place,
    };
    let events = futures_util::stream::unfold(listener, async |mut listener| {
        if listener.until.is_some_and(|until| Instant::now() >= until) {
            return None;
        }
        let event = match listener.first.take() {
            Some(first) => Event::default().data(first),
            None => next(&mut listener.latest).await?,
        };
        Some((Ok::<_, Infallible>(event), listener))
    });
    Ok(Sse::new(events).into_response())
}

async fn next(latest: &mut watch::Receiver<Arc<str>>) -> Option<Event> {
    match tokio::time::timeout(SILENCE, latest.changed()).await {
        Ok(Ok(())) => {
            let text = Arc::clone(&latest.borrow_and_update());
            Some(Event::default().data(&*text))
        }
        Ok(Err(_)) => None,
        Err(_) => Some(Event::default().comment("")),
    }
}
