//! A simulated report without what Poplar's files do not have, in place of one that was measured.

use std::path::Path;

/// Writes a report as Poplar would: only its tables and columns that are known, every step
/// longer or shorter by up to a share `noise`.
pub(crate) fn write_stripped(simulated: &Path, path: &Path, noise: f64) {
    let db = rusqlite::Connection::open(path).unwrap();
    let from = simulated.to_string_lossy();
    db.execute("ATTACH ?1 AS ours", [from.as_ref()]).unwrap();
    db.execute_batch(
        "CREATE TABLE programs AS SELECT id, name FROM ours.programs;
         CREATE TABLE compute_sets AS SELECT compute_set, name FROM ours.compute_sets;
         CREATE TABLE steps AS SELECT id, type, program, compute_set FROM ours.steps;
         CREATE TABLE memory_by_tile AS SELECT tile, total FROM ours.memory_by_tile;
         CREATE TABLE steps_by_ipu (step_id, ipu, cycles, active_tiles, cycles_base,
           active_cycles_from_min, active_cycles_from_max, active_cycles_to_min,
           active_cycles_to_max);",
    )
    .unwrap();
    let sql = "SELECT b.step_id, b.ipu, b.active_tiles, b.cycles_base + b.active_cycles_from_max,
               b.cycles_base + b.active_cycles_to_max, s.program FROM ours.steps_by_ipu b
               JOIN ours.steps s ON s.id = b.step_id ORDER BY b.step_id";
    let rows: Vec<[i64; 6]> = db
        .prepare(sql)
        .unwrap()
        .query_map([], |row| {
            let mut cells = [0; 6];
            for (at, cell) in cells.iter_mut().enumerate() {
                *cell = row.get::<_, Option<i64>>(at)?.unwrap_or(0);
            }
            Ok(cells)
        })
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    let (mut clock, mut before) = (0, 0);
    for [step, ipu, tiles, start, end, program] in rows {
        // The same for all steps of a program: what a model of it gets wrong.
        let share = ((program * 2_654_435_761) % 1000) as f64 / 500.0 - 1.0;
        let took = ((end - start) as f64 * (1.0 + noise * share)).round() as i64;
        let begin = clock + (start - before);
        let insert = "INSERT INTO steps_by_ipu VALUES (?1, ?2, ?4, ?3, ?5, 0, 0, ?4, ?4)";
        db.execute(insert, [step, ipu, tiles, took, begin]).unwrap();
        (clock, before) = (begin + took, end);
    }
}
