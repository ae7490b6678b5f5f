//! The addresses of the page, and what each one reads.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{Html, IntoResponse as _, Response};
use axum::routing::get;
use axum::{Router, middleware};
use serde_json::Value as Json;
use windlass_base::visible::json_escaped;
use windlass_base::{Guid, Moment};
use windlass_instance::Instance;
use windlass_instance::overview::{Subjects, history, jobs, metrics, tables};
use windlass_instance::presence::Looker;
use windlass_instance::retention::Now;
use windlass_instance::standing::{in_zone_of_now, standings, tell_apart};
use windlass_instance::watched::{failures, kept_names};

use super::door::{keeper, refuse};
use super::live::{self, Live};
use super::login::Logins;
use super::page;
use crate::listen::Shared;

/// Backups in an answer if the request does not say how many.
const HISTORY_DEFAULT: usize = 100;
const HISTORY_MAX: usize = 10_000;

/// What the answers are made of.
#[derive(Debug)]
pub(super) struct Web {
    pub(super) shared: Arc<Shared>,
    pub(super) rpo_minutes: i64,
    pub(super) live: Live,
    pub(super) logins: Logins,
}

type Failed = windlass_catalog::Error;

/// The answers.
pub(super) fn answers(web: &Arc<Web>) -> Router {
    Router::new()
        .route("/", get(whole_page))
        .route("/events", get(live::events))
        .route("/healthz", get(health))
        .route("/metrics", get(measured))
        .route("/api/databases", get(databases))
        .route("/api/requests", get(requests))
        .route("/api/history", get(backups))
        .route("/api/sessions", get(sessions))
        .route("/api/jobs", get(jobs_listed))
        .fallback(async || refuse(StatusCode::NOT_FOUND, "there is nothing at this address"))
        .layer(middleware::from_fn_with_state(Arc::clone(web), keeper))
        .with_state(Arc::clone(web))
}

/// Reads an instance on a thread that may wait.
pub(super) async fn read<T: Send + 'static>(
    web: &Arc<Web>,
    make: impl FnOnce(&Instance) -> Result<T, Failed> + Send + 'static,
) -> Result<T, Response> {
    let shared = Arc::clone(&web.shared);
    let made = tokio::task::spawn_blocking(move || {
        let instance = shared.instance().map_err(|error| error.to_string())?;
        make(&instance).map_err(|error| error.to_string())
    });
    let reason = match made.await {
        Ok(Ok(made)) => return Ok(made),
        Ok(Err(reason)) => reason,
        Err(error) => error.to_string(),
    };
    tracing::warn!(reason, "the page could not be made");
    // The reason may name paths: it is for the log.
    Err(refuse(
        StatusCode::INTERNAL_SERVER_ERROR,
        "the instance could not be read: the server's log says why",
    ))
}

/// Judges the databases by their history.
pub(super) fn with_subjects<T>(
    instance: &Instance,
    (rpo_minutes, days): (i64, Option<u32>),
    make: impl FnOnce(&Subjects<'_>, &mut Looker) -> T,
) -> Result<T, Failed> {
    let catalog = instance.catalog();
    let records = catalog.databases()?;
    let mut past = catalog.past_backups(None)?;
    let machine = &instance.identity().machine;
    tell_apart(&mut past, &records, machine);
    let failures = failures(catalog, &past, &records, machine)?;
    in_zone_of_now(&mut past);
    let mut looker = Looker::of(catalog)?;
    let standings = standings(&past, Some(&mut looker), Now::here());
    let kept = kept_names(&records, &standings, &failures);
    let subjects = Subjects::new(standings, &kept, rpo_minutes, days, Moment::now().0);
    Ok(make(&subjects, &mut looker))
}

fn json(value: &Json) -> Response {
    let text = value.to_string();
    let kind = [(CONTENT_TYPE, "application/json")];
    (kind, json_escaped(&text).into_owned()).into_response()
}

async fn whole_page(State(web): State<Arc<Web>>) -> Result<Response, Response> {
    let nonce = Guid::random().to_string();
    let (rpo_minutes, own) = (web.rpo_minutes, nonce.clone());
    let html = read(&web, move |instance| page::of(instance, rpo_minutes, &own)).await?;
    let policy = [(CONTENT_SECURITY_POLICY, page::policy(&nonce))];
    Ok((policy, Html(html)).into_response())
}

async fn health(State(web): State<Arc<Web>>) -> Result<Response, Response> {
    read(&web, |instance| instance.catalog().databases().map(drop)).await?;
    Ok("ok\n".into_response())
}

async fn measured(State(web): State<Arc<Web>>) -> Result<Response, Response> {
    let text = read(&web, |instance| {
        let machine = &instance.identity().machine;
        Ok(metrics::metrics(instance.catalog(), machine)?.text())
    });
    let kind = [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    Ok((kind, text.await?).into_response())
}

async fn databases(State(web): State<Arc<Web>>) -> Result<Response, Response> {
    let rpo_minutes = web.rpo_minutes;
    let made = read(&web, move |instance| {
        with_subjects(instance, (rpo_minutes, None), |subjects, _| {
            let (databases, gaps) = (tables::databases(subjects), tables::gaps(subjects));
            tables::json(subjects, &[&databases, &gaps])
        })
    });
    Ok(json(&made.await?))
}

async fn requests(State(web): State<Arc<Web>>) -> Result<Response, Response> {
    Ok(json(
        &read(&web, |instance| Ok(instance.requests_now())).await?,
    ))
}

async fn sessions(State(web): State<Arc<Web>>) -> Result<Response, Response> {
    Ok(json(
        &read(&web, |instance| Ok(instance.sessions_now())).await?,
    ))
}

async fn jobs_listed(State(web): State<Arc<Web>>) -> Result<Response, Response> {
    let made = read(&web, |instance| {
        Ok(jobs::to_json(&page::jobs_now(instance)?))
    });
    Ok(json(&made.await?))
}

async fn backups(
    State(web): State<Arc<Web>>,
    RawQuery(query): RawQuery,
) -> Result<Response, Response> {
    let Some(last) = asked(query.as_deref()) else {
        return Err(refuse(
            StatusCode::BAD_REQUEST,
            "the history takes last=N, with N from 1 to 10000",
        ));
    };
    let rows = read(&web, move |instance| {
        let catalog = instance.catalog();
        let mut past = catalog.past_backups(None)?;
        past.retain(|backup| !backup.is_forgotten);
        let newest = past.split_off(past.len().saturating_sub(last));
        let mut looker = Looker::of(catalog)?;
        let rows = history::backups(&newest, &mut looker, Moment::now().0);
        Ok(history::to_json(&rows))
    });
    Ok(json(&rows.await?))
}

/// How many backups a request asks for; `None` if it cannot be told.
fn asked(query: Option<&str>) -> Option<usize> {
    match query.unwrap_or_default() {
        "" => Some(HISTORY_DEFAULT),
        query => {
            let last = query.strip_prefix("last=")?.parse().ok()?;
            (1..=HISTORY_MAX).contains(&last).then_some(last)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_the_history_is_bounded() {
        assert_eq!(asked(None), Some(HISTORY_DEFAULT));
        assert_eq!(asked(Some("last=7")), Some(7));
        for wrong in [
            "last=0",
            "last=10001",
            "last=-1",
            "last",
            "first=1",
            "last=1&x=2",
        ] {
            assert_eq!(asked(Some(wrong)), None, "{wrong}");
        }
    }
}
