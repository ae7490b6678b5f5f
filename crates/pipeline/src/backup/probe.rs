//! Measuring runs: a backup without media. Nothing is written or recorded.

use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use windlass_base::Guid;
use windlass_crypt::SetKey;
use windlass_source::Snapshot;

use super::movement::{Movement, Sink};
use super::proof::Proof;
use super::read::Schedule;
use super::transform::Transform;
use super::{accounts, pools, priority, read_method, size_of};
use crate::control::Control;
use crate::error::Error;
use crate::plan::Plan;
use crate::report::{Observer, ProbeReport};
use crate::request::{OnDamage, Probe, ProbeRequest};
use crate::totals::Totals;

/// Reads a snapshot, and transforms it if requested, with the settings of a backup to one device.
///
/// # Errors
/// The first error.
pub fn probe(
    request: &ProbeRequest,
    snapshot: Box<dyn Snapshot>,
    observer: &dyn Observer,
) -> Result<ProbeReport, Error> {
    priority::run((request.tuning.goal, None), |priority| {
        run(request, snapshot, observer, priority)
    })
}

fn run(
    request: &ProbeRequest,
    snapshot: Box<dyn Snapshot>,
    observer: &dyn Observer,
    priority: Option<String>,
) -> Result<ProbeReport, Error> {
    let begun = Instant::now();
    let plan = plan_of(request, &*snapshot, priority)?;
    observer.planned(&plan);
    let (frames, output) = pools(&plan);
    let schedule = Schedule::new(&*snapshot, plan.frame_bytes.value);
    let control = Control::new(
        observer,
        schedule.total_bytes(),
        vec![frames.clone(), output.clone()],
        accounts::open(&*snapshot),
    );
    let set_guid = Guid::random();
    let key = request
        .encryption
        .map(|algorithm| SetKey::generate(algorithm, set_guid.to_stored()))
        .transpose()?;
    let transform = Transform {
        snapshot: &*snapshot,
        plan: &plan,
        set_guid,
        deflate: request.deflate.as_deref(),
        key: key.as_ref(),
        is_signed: false,
        verify_pages: request.checksum,
        on_damage: OnDamage::Stop,
        digests: !snapshot.tracks_changes(),
        base: None,
        digests_to: None,
        output: &output,
        next_ordinal: AtomicU64::new(0),
        totals: Totals::default(),
        proof: Proof::of(&plan),
        damaged: Mutex::default(),
    };
    let movement = Movement {
        transform: &transform,
        schedule: &schedule,
        frames: &frames,
        control: &control,
    };
    let (stages, adapted) = movement.run(match request.probe {
        Probe::Read => Sink::Read,
        Probe::Transform => Sink::Transformed,
    });
    control.finish()?;
    let stored_bytes = match request.probe {
        Probe::Read => stages.read.bytes_out,
        Probe::Transform => transform.totals.stored_bytes(),
    };
    let narrowed_bytes = transform.totals.narrowed_bytes();
    snapshot.close()?;
    drop(snapshot);
    Ok(ProbeReport {
        probe: request.probe,
        processed_bytes: stages.read.bytes_out,
        stored_bytes,
        narrowed_bytes,
        elapsed: begun.elapsed(),
        plan,
        stages,
        adapted,
    })
}

fn plan_of(
    request: &ProbeRequest,
    snapshot: &dyn Snapshot,
    priority: Option<String>,
) -> Result<Plan, Error> {
    let mut plan = Plan::for_backup(
        request.compression,
        1,
        0,
        size_of(snapshot),
        read_method(snapshot, request.tuning)?,
        request.tuning,
    );
    plan.priority = priority;
    Ok(plan)
}
