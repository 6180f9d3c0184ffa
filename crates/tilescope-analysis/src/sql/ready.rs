//! Predefined queries.

use super::SqlError;
use super::connection;
use crate::records::QueryClock;
use std::sync::Arc;
use std::time::Duration;
use tilescope_report::Report;

/// A predefined query with a name.
pub struct ReadyQuery {
    pub name: &'static str,
    /// The question that it answers.
    pub about: &'static str,
    /// Tables of the file that it reads.
    pub tables: &'static [&'static str],
    pub sql: &'static str,
}

/// Every predefined query.
pub const READY_QUERIES: &[ReadyQuery] = &[
    ReadyQuery {
        name: "slowest-programs",
        about: "the ten program names with the most cycles over all IPUs",
        tables: &[],
        sql: "SELECT name, type, sum(steps) AS steps, sum(cycles) AS cycles, max(cycles) AS most_on_an_ipu
FROM program_cycles GROUP BY name, type ORDER BY cycles DESC LIMIT 10",
    },
    ReadyQuery {
        name: "slowest-operations",
        about: "the ten operations with the most cycles over all IPUs",
        tables: &["operations"],
        sql: "SELECT o.name, o.kind, o.pass, o.ipu, sum(c.steps) AS steps, sum(c.cycles) AS cycles
FROM program_cycles c JOIN operations o ON o.id = c.operation
GROUP BY o.id ORDER BY cycles DESC LIMIT 10",
    },
    ReadyQuery {
        name: "activities",
        about: "cycles of each IPU by activity",
        tables: &[],
        sql: "SELECT ipu, sub_lane, activity, cycles,
  1.0 * cycles / sum(cycles) OVER (PARTITION BY ipu, sub_lane) AS share, tile_balance
FROM activity_cycles ORDER BY ipu, sub_lane, cycles DESC",
    },
    ReadyQuery {
        name: "step-types",
        about: "steps, cycles and bytes by type of step",
        tables: &[],
        sql: "SELECT type, sum(steps) AS steps, sum(cycles) AS cycles, sum(bytes_in) AS bytes_in,
  sum(bytes_out) AS bytes_out
FROM program_cycles GROUP BY type ORDER BY cycles DESC",
    },
    ReadyQuery {
        name: "iterations",
        about: "the first hundred iterations with their cycles",
        tables: &["marks"],
        sql: "SELECT number, first_cycle, end_cycle, end_cycle - first_cycle AS cycles
FROM marks WHERE kind = 'iteration' ORDER BY first_cycle LIMIT 100",
    },
    ReadyQuery {
        name: "slowest-programs-of-an-iteration",
        about: "the ten program names with the most cycles in the first iteration",
        tables: &["marks"],
        sql: "SELECT c.name, c.type, sum(c.steps) AS steps, sum(c.cycles) AS cycles
FROM (SELECT first_cycle, end_cycle FROM marks WHERE kind = 'iteration'
  ORDER BY first_cycle LIMIT 1) m, program_cycles(m.first_cycle, m.end_cycle) c
GROUP BY c.name, c.type ORDER BY cycles DESC LIMIT 10",
    },
    ReadyQuery {
        name: "marks",
        about: "number of marks of each kind, and cycles of the longest",
        tables: &["mark_kinds"],
        sql: "SELECT kind, count, longest_cycles FROM mark_kinds ORDER BY kind",
    },
    ReadyQuery {
        name: "fullest-tiles",
        about: "the ten tiles with the most memory in use",
        tables: &["memory_by_tile"],
        sql: "SELECT tile, total AS bytes FROM memory_by_tile ORDER BY total DESC, tile LIMIT 10",
    },
    ReadyQuery {
        name: "memory-by-category",
        about: "bytes over all tiles by memory category",
        tables: &["category_bytes", "var_categories"],
        sql: "SELECT c.name AS category, sum(b.bytes * (b.end_tile - b.first_tile) * b.times) AS bytes
FROM category_bytes b JOIN var_categories c ON c.id = b.category
GROUP BY c.id ORDER BY bytes DESC",
    },
    ReadyQuery {
        name: "largest-variables",
        about: "the ten variables with the most bytes over all tiles",
        tables: &["vars", "var_tiles", "vars_string_table", "var_categories"],
        sql: "SELECT s.string AS name, c.name AS category,
  sum(t.bytes * (t.end_tile - t.first_tile) * t.times) AS bytes
FROM var_tiles t JOIN vars v ON v.id = t.var
LEFT JOIN vars_string_table s ON s.id = v.name LEFT JOIN var_categories c ON c.id = v.category
GROUP BY v.id ORDER BY bytes DESC LIMIT 10",
    },
    ReadyQuery {
        name: "operations-by-kind",
        about: "number of operations of each kind, and their floating point operations",
        tables: &["operations"],
        sql: "SELECT kind, pass, count(*) AS operations, sum(flops) AS flops
FROM operations GROUP BY kind, pass ORDER BY flops DESC",
    },
    ReadyQuery {
        name: "busiest-exchanges",
        about: "the ten exchanges that deliver the most bytes in one execution",
        tables: &["exchanges", "exchange_tiles", "programs"],
        sql: "SELECT p.name, sum(t.bytes_delivered * (t.end_tile - t.first_tile) * t.times) AS bytes
FROM exchange_tiles t JOIN exchanges e ON e.id = t.exchange JOIN programs p ON p.id = e.program
GROUP BY e.id ORDER BY bytes DESC LIMIT 10",
    },
    ReadyQuery {
        name: "options",
        about: "the options in effect",
        tables: &["options"],
        sql: "SELECT key, value FROM options ORDER BY id",
    },
];

impl ReadyQuery {
    /// The query with a given name.
    pub fn named(name: &str) -> Option<&'static Self> {
        READY_QUERIES.iter().find(|query| query.name == name)
    }

    /// The tables that it reads but a report lacks: files of other tools, and of older versions,
    /// record less.
    ///
    /// # Errors
    /// Reports that cannot be read.
    pub fn missing_tables(&self, report: &Arc<Report>) -> Result<Vec<&'static str>, SqlError> {
        let clock = Arc::new(QueryClock::new(Duration::from_secs(10), Arc::default()));
        let connection = connection::open(report, &clock, &Arc::default(), "")?;
        let mut missing = Vec::new();
        for table in self.tables {
            let sql = "SELECT 1 FROM pragma_table_xinfo(?1)";
            let found = connection.prepare(sql).and_then(|mut found| found.exists([table]));
            if !found.map_err(|error| SqlError::Failed(error.to_string()))? {
                missing.push(*table);
            }
        }
        Ok(missing)
    }
}
