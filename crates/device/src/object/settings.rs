//! What can be said about objects besides their URLs.

use http::HeaderMap;
use jiff::Timestamp;
use object_store::TagSet;
use object_store::aws::Checksum;

use super::service;

/// A checksum that is sent with each part, for the store to check and to keep with the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartChecksum {
    Crc64Nvme,
    Sha256,
}

impl PartChecksum {
    fn algorithm(self) -> Checksum {
        match self {
            Self::Crc64Nvme => Checksum::CRC64NVME,
            Self::Sha256 => Checksum::SHA256,
        }
    }
}

/// Who may shorten a retention: with the right to, or nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockMode {
    Governance,
    Compliance,
}

impl LockMode {
    /// As the store writes it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Governance => "GOVERNANCE",
            Self::Compliance => "COMPLIANCE",
        }
    }

    pub fn of_word(word: &str) -> Option<Self> {
        let modes = [Self::Governance, Self::Compliance];
        modes.into_iter().find(|mode| mode.word() == word)
    }
}

/// What keeps an object from being deleted or replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectLock {
    /// For how many days from the beginning of the backup.
    pub retention: Option<(LockMode, u32)>,
    /// Until somebody ends it.
    pub legal_hold: bool,
}

impl ObjectLock {
    /// Longest retention.
    pub const DAYS_MAX: u32 = 36_500;

    /// As a request that begins an object at `now` says it.
    pub(super) fn headers(&self, now: Timestamp) -> HeaderMap {
        let mut values = Vec::new();
        if let Some((mode, days)) = self.retention {
            let until = now.as_second() + i64::from(days.min(Self::DAYS_MAX)) * 86_400;
            let until = Timestamp::from_second(until).unwrap_or(Timestamp::MAX);
            values.push(("x-amz-object-lock-mode", mode.word().to_owned()));
            values.push(("x-amz-object-lock-retain-until-date", until.to_string()));
        }
        if self.legal_hold {
            values.push(("x-amz-object-lock-legal-hold", "ON".to_owned()));
        }
        service::headers(values)
    }
}

/// How objects are asked for and written; by default as the store does by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObjectSettings {
    /// Takes precedence over the one in the host's name.
    pub region: Option<String>,
    /// `STANDARD_IA` and the like, in the store's words.
    pub storage_class: Option<String>,
    /// Names and values.
    pub tags: Vec<(String, String)>,
    pub checksum: Option<PartChecksum>,
    pub lock: Option<ObjectLock>,
    /// Parts of an object that are on their way at a time: those written, or those read ahead.
    pub concurrency: Option<usize>,
    /// The key may write objects and nothing else: nothing is asked and nothing read back.
    pub write_only: bool,
}

impl ObjectSettings {
    /// Most parts on their way.
    pub const CONCURRENCY_MAX: usize = 64;

    /// A store takes a lock only with a checksum.
    pub(super) fn checksum_sent(&self) -> Option<Checksum> {
        let of_lock = self.lock.map(|_| PartChecksum::Crc64Nvme);
        self.checksum.or(of_lock).map(PartChecksum::algorithm)
    }

    pub(super) fn tag_set(&self) -> TagSet {
        let mut set = TagSet::default();
        for (name, value) in &self.tags {
            set.push(name, value);
        }
        set
    }
}
