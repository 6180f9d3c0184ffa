//! The resident size of a process after what it allocated is freed. A program of its own: other
//! tests in the same process would allocate meanwhile.

#![cfg(all(target_os = "linux", target_env = "gnu"))]

/// Bytes of memory of the process.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

#[test]
fn pages_between_allocations_are_given_back() {
    let before = resident();
    // Small pieces with some that stay between them, as caches of a report leave the heap.
    let pieces: Vec<Box<[u8; 1000]>> = (0..100_000).map(|_| Box::new([1; 1000])).collect();
    let mut kept = Vec::new();
    for (number, piece) in pieces.into_iter().enumerate() {
        if number % 1000 == 999 {
            kept.push(piece);
        }
    }
    let freed = resident();
    assert!(freed > before + (50 << 20), "the allocator keeps {} bytes", freed - before);
    tilescope_heap::give_back();
    let given = resident();
    assert!(given < before + (10 << 20), "{} bytes are left", given - before);
    assert!(kept.iter().all(|piece| piece.iter().all(|byte| *byte == 1)));
}
