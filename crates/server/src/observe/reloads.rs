//! The figures of reloads: how many failed, and until when the certificate in force is valid.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// A part of a reload that can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reloadable {
    /// A model, or the settings that name the models.
    Model,
    /// A head.
    Head,
    /// A certificate, or its key.
    Certificate,
    /// The file of API keys.
    Keys,
}

impl Reloadable {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Model, Self::Head, Self::Certificate, Self::Keys];

    /// Its name, as a label.
    pub fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Head => "head",
            Self::Certificate => "certificate",
            Self::Keys => "keys",
        }
    }
}

/// Stands for a time where there is no certificate.
const NONE: i64 = i64::MIN;

/// The figures of reloads, by SIGHUP, over HTTP, or because a watched file changed.
#[derive(Debug)]
pub struct ReloadFigures {
    failures: [AtomicU64; Reloadable::ALL.len()],
    certificate_expiry: AtomicI64,
}

impl Default for ReloadFigures {
    fn default() -> Self {
        Self { failures: Default::default(), certificate_expiry: NONE.into() }
    }
}

impl ReloadFigures {
    /// Counts a reload in which this part failed.
    pub fn count_failure(&self, of: Reloadable) {
        self.failures[of as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// The number of reloads in which this part failed.
    pub fn failures(&self, of: Reloadable) -> u64 {
        self.failures[of as usize].load(Ordering::Relaxed)
    }

    /// Notes until when the certificate in force is valid, in seconds since 1970; `None` without
    /// one.
    pub fn set_certificate_expiry(&self, expiry: Option<i64>) {
        self.certificate_expiry.store(expiry.unwrap_or(NONE), Ordering::Relaxed);
    }

    /// Until when the certificate in force is valid, in seconds since 1970.
    pub fn certificate_expiry(&self) -> Option<i64> {
        Some(self.certificate_expiry.load(Ordering::Relaxed)).filter(|&expiry| expiry != NONE)
    }
}
