//! Distribution of the outputs of a tile over its worker threads.
//!
//! Outputs are numbered through batch, rows and columns, and every worker gets a contiguous range
//! of them (poplibs `ConvUtilInternal.cpp` partitionConvPartialByWorker). Its worklist has one
//! entry per row it touches: possibly the last part of a row, whole rows, the first part of a row.

/// Outputs of a tile as rows of equal length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ConvOutputRows {
    /// Number of rows of all batch elements.
    pub count: u64,
    /// Number of outputs of a row.
    pub length: u64,
}

/// Rows and parts of rows of one worker, with at most three different lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ConvWorkerShare {
    /// Outputs in the first, possibly partial, row.
    pub first: u64,
    /// Number of whole rows after it.
    pub whole_rows: u64,
    /// Outputs of a whole row.
    pub row: u64,
    /// Outputs of the partial row at the end.
    pub last: u64,
}

impl ConvWorkerShare {
    /// Sum of `cost` over all entries of the worklist.
    pub(crate) fn sum_over_worklist(&self, cost: impl Fn(u64) -> u64) -> u64 {
        let mut sum = 0;
        if self.first > 0 {
            sum += cost(self.first);
        }
        if self.whole_rows > 0 {
            sum += self.whole_rows * cost(self.row);
        }
        if self.last > 0 {
            sum += cost(self.last);
        }
        sum
    }

    /// Number of entries of the worklist.
    pub(crate) fn entries(&self) -> u64 {
        u64::from(self.first > 0) + self.whole_rows + u64::from(self.last > 0)
    }
}

impl ConvOutputRows {
    /// Share of worker `worker` of `workers`.
    pub(crate) fn worker_share(&self, worker: u64, workers: u64) -> ConvWorkerShare {
        let total = self.count * self.length;
        let begin = worker * total / workers;
        let end = (worker + 1) * total / workers;
        if begin == end {
            return ConvWorkerShare::default();
        }
        let offset = begin % self.length;
        let first = (self.length - offset).min(end - begin);
        let rest = end - begin - first;
        ConvWorkerShare {
            first,
            whole_rows: rest / self.length,
            row: self.length,
            last: rest % self.length,
        }
    }

    /// Cycles of the slowest and the fastest worker, where `cost` returns the cycles of a share.
    pub(crate) fn worker_cost_extremes(
        &self,
        workers: u64,
        cost: impl Fn(ConvWorkerShare) -> u64,
    ) -> WorkerCostExtremes {
        let none = WorkerCostExtremes { slowest: 0, fastest: u64::MAX };
        (0..workers).map(|worker| cost(self.worker_share(worker, workers))).fold(
            none,
            |sum, cost| WorkerCostExtremes {
                slowest: sum.slowest.max(cost),
                fastest: sum.fastest.min(cost),
            },
        )
    }
}

/// Cycles of the slowest and of the fastest worker of a vertex.
pub(crate) struct WorkerCostExtremes {
    pub slowest: u64,
    pub fastest: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outputs(share: ConvWorkerShare) -> u64 {
        share.first + share.whole_rows * share.row + share.last
    }

    #[test]
    fn workers_share_all_outputs() {
        for (count, length) in [(1, 3), (1, 6), (2, 7), (5, 13), (40, 1), (1, 100)] {
            let rows = ConvOutputRows { count, length };
            let total: u64 = (0..6).map(|worker| outputs(rows.worker_share(worker, 6))).sum();
            assert_eq!(total, count * length);
        }
    }

    #[test]
    fn a_worker_may_start_inside_a_row() {
        let rows = ConvOutputRows { count: 2, length: 7 };
        let share = rows.worker_share(3, 6);
        assert_eq!(share, ConvWorkerShare { first: 2, whole_rows: 0, row: 7, last: 0 });
        assert_eq!(
            rows.worker_share(2, 6),
            ConvWorkerShare { first: 3, whole_rows: 0, row: 7, last: 0 }
        );
    }
}
