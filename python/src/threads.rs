//! Threads that share the work of an answer.
//!
//! Analyses use rayon, whose pool of a process is missing in one that was forked from it, as workers
//! of data loaders are: whoever asked that pool there would wait for ever. So each thread of Python
//! that asks has a pool of its own, made anew in another process.

use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::cell::RefCell;
use std::rc::Rc;

thread_local! {
    /// The pool, and the process it was made in.
    static POOL: RefCell<Option<(u32, Rc<ThreadPool>)>> = const { RefCell::new(None) };
}

/// The pool of this thread; `None` where the system gives it no threads.
fn pool() -> Option<Rc<ThreadPool>> {
    let process = std::process::id();
    POOL.with_borrow_mut(|known| {
        if let Some((made_in, pool)) = known
            && *made_in == process
        {
            return Some(pool.clone());
        }
        // Ending a pool whose threads are those of another process would wait for them.
        std::mem::forget(known.take());
        let pool = Rc::new(ThreadPoolBuilder::new().build().ok()?);
        *known = Some((process, pool.clone()));
        Some(pool)
    })
}

/// Works without holding up other threads of Python, on all processors.
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    py.detach(|| match pool() {
        Some(pool) => pool.install(work),
        None => work(),
    })
}
