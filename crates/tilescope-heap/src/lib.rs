//! Gives freed memory back to the system.
//!
//! The allocator of glibc keeps freed pages for later allocations, which is right while a program
//! works, and wrong for a window that has closed its reports and waits.

/// Gives all pages back to the system that hold no allocation. Other allocators than that of glibc
/// do so by themselves, and this has no effect with them.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "malloc_trim takes a number, and locks what it works on")]
pub fn give_back() {
    // SAFETY: the function has no preconditions, and may be called from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Gives all pages back to the system that hold no allocation. Other allocators than that of glibc
/// do so by themselves, and this has no effect with them.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back() {}
