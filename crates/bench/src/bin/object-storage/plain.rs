//! A client of the store that sends a file in parts or reads it in ranges, and does nothing else.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use clap::ValueEnum;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path as Key;
use object_store::{ClientOptions, ObjectStore as _, ObjectStoreExt as _, PutMultipartOptions};

use crate::server::{BUCKET, KEY, SECRET};

/// As Windlass has them.
const PART_BYTES: u64 = 10 << 20;
const PIECE_BYTES: u64 = 8 << 20;
const IN_FLIGHT: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Work {
    Put,
    Get,
}

/// Does the work with so many objects at once, each of which has an equal share of the file.
pub(crate) fn run(work: Work, endpoint: &str, file: &Path, objects: usize) -> anyhow::Result<()> {
    let store = AmazonS3Builder::new()
        .with_endpoint(endpoint)
        .with_bucket_name(BUCKET)
        .with_region("us-east-1")
        .with_access_key_id(KEY)
        .with_secret_access_key(SECRET)
        .with_client_options(ClientOptions::new().with_allow_http(true))
        .build()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let file = Arc::new(File::open(file)?);
    let length = file.metadata()?.len();
    let share = length.div_ceil(objects as u64);
    runtime.block_on(async {
        let mut all = FuturesUnordered::new();
        for object in 0..objects as u64 {
            let range = object * share..length.min((object + 1) * share);
            let (store, file) = (store.clone(), Arc::clone(&file));
            all.push(tokio::spawn(async move {
                let key = Key::from(format!("plain/{object}"));
                match work {
                    Work::Put => put(&store, &key, &file, range).await,
                    Work::Get => get(&store, &key, range.end - range.start).await,
                }
            }));
        }
        while let Some(done) = all.next().await {
            done??;
        }
        anyhow::Ok(())
    })
}

async fn put(
    store: &AmazonS3,
    key: &Key,
    file: &File,
    range: std::ops::Range<u64>,
) -> anyhow::Result<()> {
    let mut upload = store
        .put_multipart_opts(key, PutMultipartOptions::default())
        .await?;
    let mut sending = FuturesUnordered::new();
    let mut at = range.start;
    while at < range.end {
        let count = PART_BYTES.min(range.end - at);
        let mut part = vec![0; count as usize];
        file.read_exact_at(&mut part, at)?;
        if sending.len() == IN_FLIGHT {
            sending.next().await.transpose()?.transpose()?;
        }
        sending.push(tokio::spawn(upload.put_part(Bytes::from(part).into())));
        at += count;
    }
    while let Some(sent) = sending.next().await {
        sent??;
    }
    upload.complete().await?;
    Ok(())
}

async fn get(store: &AmazonS3, key: &Key, length: u64) -> anyhow::Result<()> {
    let starts = (0..length).step_by(PIECE_BYTES as usize);
    let pieces = starts.map(|start| {
        let (store, key) = (store.clone(), key.clone());
        let range = start..length.min(start + PIECE_BYTES);
        tokio::spawn(async move { store.get_range(&key, range).await })
    });
    let mut arriving = futures_util::stream::iter(pieces).buffered(IN_FLIGHT);
    let mut seen = 0;
    while let Some(piece) = arriving.next().await {
        seen += piece??.len() as u64;
    }
    anyhow::ensure!(seen == length, "{seen} of {length} bytes");
    Ok(())
}
