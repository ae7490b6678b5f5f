//! The locks used by the dirty page lists, the pool, the versions and the log.
//!
//! They are `parking_lot`'s. With the feature `model` they are `shuttle`'s with the same interface,
//! and the checks in `model` try many thread schedules; nothing else works in that build.

#[cfg(not(feature = "model"))]
pub(crate) use self::real::{AtomicU64, Condvar, Mutex, MutexGuard, RwLock};
#[cfg(feature = "model")]
pub(crate) use self::shuttled::{AtomicU64, Condvar, Mutex, MutexGuard, RwLock};

#[cfg(not(feature = "model"))]
mod real {
    pub(crate) use std::sync::atomic::AtomicU64;

    pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};
}

#[cfg(feature = "model")]
mod shuttled {
    use std::ops::{Deref, DerefMut};

    pub(crate) use shuttle::sync::atomic::AtomicU64;
    use shuttle::sync::{self, RwLockReadGuard, RwLockWriteGuard};

    /// Like `parking_lot::Mutex`.
    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            MutexGuard(Some(self.0.lock().expect("no thread has panicked")))
        }
    }

    /// Like `parking_lot::MutexGuard`; empty only while its thread waits.
    #[derive(Debug)]
    pub(crate) struct MutexGuard<'a, T>(Option<sync::MutexGuard<'a, T>>);

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            self.0.as_ref().expect("not waiting")
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            self.0.as_mut().expect("not waiting")
        }
    }

    /// Like `parking_lot::Condvar`.
    #[derive(Debug, Default)]
    pub(crate) struct Condvar(sync::Condvar);

    impl Condvar {
        pub(crate) fn new() -> Self {
            Self::default()
        }

        pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
            let held = guard.0.take().expect("not waiting");
            guard.0 = Some(self.0.wait(held).expect("no thread has panicked"));
        }

        pub(crate) fn notify_all(&self) {
            self.0.notify_all();
        }
    }

    /// Like `parking_lot::RwLock`.
    #[derive(Debug, Default)]
    pub(crate) struct RwLock<T>(sync::RwLock<T>);

    impl<T> RwLock<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(sync::RwLock::new(value))
        }

        pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
            self.0.read().expect("no thread has panicked")
        }

        pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
            self.0.write().expect("no thread has panicked")
        }
    }
}
