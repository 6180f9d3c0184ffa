//! Thread pools for answers.
//!
//! Analyses use rayon. Its pool does not survive a fork, as in workers of data loaders: a call to
//! it there would block forever. Each thread of Python therefore has a pool of its own, created
//! anew in another process.

use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::cell::RefCell;
use std::rc::Rc;

thread_local! {
    /// The pool, and the process that created it.
    static POOL: RefCell<Option<(u32, Rc<ThreadPool>)>> = const { RefCell::new(None) };
}

/// The pool of this thread; `None` if the system gives it no threads.
fn pool() -> Option<Rc<ThreadPool>> {
    let process = std::process::id();
    POOL.with_borrow_mut(|known| {
        if let Some((made_in, pool)) = known
            && *made_in == process
        {
            return Some(pool.clone());
        }
        // Dropping a pool with threads of another process would wait for them.
        std::mem::forget(known.take());
        let pool = Rc::new(ThreadPoolBuilder::new().build().ok()?);
        *known = Some((process, pool.clone()));
        Some(pool)
    })
}

/// Runs without blocking other threads of Python, on all processors.
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    py.detach(|| match pool() {
        Some(pool) => pool.install(work),
        None => work(),
    })
}
