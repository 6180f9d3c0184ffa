//! Constants of a cost model fitted to a measurement, within their bounds.
//!
//! Close to its constants the simulation is linear in them: y = x + J (c - c0), with the simulated
//! cycles x of each program at the constants c0, and J from one more simulation for each constant.
//! The fit takes the c with the least sum of Huber's loss over the relative residuals of programs,
//! by iteratively reweighted least squares; bounds are kept by coordinate descent. Three sorts of
//! constants stay as they are, since any value would fit: those without effect on any program,
//! those whose effects are combinations of the effects of others, and those that the measurement
//! barely constrains.

use super::AlignedProgram;
use ndarray::Array2;

/// A constant that can be fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct FitConstant {
    /// Its key in a spec.
    pub key: String,
    pub title: String,
    /// The value used by the simulation.
    pub value: f64,
    pub least: f64,
    pub most: f64,
    /// True for counts, which are whole numbers.
    pub whole: bool,
    /// Additional cycles of each program per unit of the constant; empty if not known.
    pub slopes: Vec<f64>,
}

/// The result of fitting a constant.
#[derive(Clone, Debug, PartialEq)]
pub enum ConstantState {
    /// The fitted value and its standard error; the titles of constants with the same effects,
    /// which stay as they are.
    Fitted { value: f64, error: f64, at_bound: bool, instead_of: Vec<String> },
    /// No operation of the measurement depends on it.
    WithoutEffect,
    /// Its effects are a combination of the effects of the constants with these titles.
    OnlyTogether(Vec<String>),
    /// The measurement allows almost any value between its bounds.
    TooWeak { error: f64 },
}

impl ConstantState {
    /// The state of a constant that is fitted later.
    fn to_be_fitted() -> Self {
        Self::Fitted { value: 0.0, error: 0.0, at_bound: false, instead_of: Vec::new() }
    }
}

/// A constant and its result.
#[derive(Clone, Debug, PartialEq)]
pub struct ConstantFit {
    pub constant: FitConstant,
    pub state: ConstantState,
}

impl ConstantFit {
    /// The fitted value, or the original one if it was not fitted.
    pub fn value(&self) -> f64 {
        match self.state {
            ConstantState::Fitted { value, .. } => value,
            _ => self.constant.value,
        }
    }
}

/// Prediction error of operations that were left out of a fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeldOutError {
    /// Number of parts that the operations were divided into; each was held out once.
    pub folds: usize,
    /// Sum of the residuals' sizes over the measured cycles, before and after.
    pub before: f64,
    pub after: f64,
}

/// The result of a fit.
#[derive(Clone, Debug, PartialEq)]
pub struct FitResult {
    pub constants: Vec<ConstantFit>,
    /// Sum of the residuals' sizes over the measured cycles, before the fit.
    pub before: f64,
    /// The same after the fit, according to the linear model.
    pub after: f64,
    /// `None` if there are too few operations to hold some out.
    pub held_out: Option<HeldOutError>,
}

/// The minimum number of operations for which some can be held out.
pub const MIN_OPERATIONS: usize = 4;

/// The largest number of parts that operations are divided into.
const FOLDS: usize = 5;

/// Relative residuals above this size have less and less weight.
const HUBER: f64 = 0.02;

/// Smallest share of the measurement that a program is weighted by: the residuals of smaller
/// programs are rounding errors.
const LEAST_SHARE: f64 = 1e-4;

/// Share of its effects below which the remainder of a constant, after the others are projected
/// out, makes it dependent on them.
const DEPENDENT: f64 = 0.02;

/// Rounds of reweighting the residuals.
const REWEIGHTED: usize = 40;

/// Sweeps of coordinate descent over all constants.
const SWEEPS: usize = 400;

/// The problem: the programs that take part, and the weight of each.
struct FitProblem<'a> {
    constants: &'a [FitConstant],
    /// Indices of the programs that take part.
    rows: Vec<usize>,
    programs: &'a [AlignedProgram],
    /// Reciprocal of the cycles that the residuals of a program are relative to.
    scale: Vec<f64>,
}

/// Fits `constants` to the aligned programs.
pub fn fit(programs: &[AlignedProgram], constants: &[FitConstant]) -> FitResult {
    let rows: Vec<usize> = (0..programs.len()).filter(|at| programs[*at].is_of_machine()).collect();
    let problem = FitProblem::new(programs, constants, rows.clone());
    let states = problem.solve();
    let values = values_of(constants, &states);
    let before = problem.error_of_operations(&rows, &start_of(constants));
    let after = problem.error_of_operations(&rows, &values);
    let held_out = held_out(programs, constants, &rows);
    let constants = constants.iter().cloned().zip(states);
    let constants = constants.map(|(constant, state)| ConstantFit { constant, state }).collect();
    FitResult { constants, before, after, held_out }
}

fn start_of(constants: &[FitConstant]) -> Vec<f64> {
    constants.iter().map(|constant| constant.value).collect()
}

fn values_of(constants: &[FitConstant], states: &[ConstantState]) -> Vec<f64> {
    let mut values = Vec::with_capacity(constants.len());
    for (constant, state) in constants.iter().zip(states) {
        values.push(match state {
            ConstantState::Fitted { value, .. } => *value,
            _ => constant.value,
        });
    }
    values
}

/// Predicts each part of the operations from a fit to the other parts.
fn held_out(
    programs: &[AlignedProgram],
    constants: &[FitConstant],
    rows: &[usize],
) -> Option<HeldOutError> {
    let mut operations: Vec<usize> = rows.iter().map(|at| programs[*at].operation).collect();
    operations.sort_unstable();
    operations.dedup();
    if operations.len() < MIN_OPERATIONS {
        return None;
    }
    let folds = FOLDS.min(operations.len());
    let mut before = 0.0;
    let mut after = 0.0;
    let mut measured = 0.0;
    for fold in 0..folds {
        let is_held = |at: &usize| {
            let place = operations.partition_point(|of| *of < programs[*at].operation);
            place % folds == fold
        };
        let (held, rest): (Vec<usize>, Vec<usize>) = rows.iter().partition(|at| is_held(at));
        let problem = FitProblem::new(programs, constants, rest);
        let values = values_of(constants, &problem.solve());
        let cycles: f64 = held.iter().map(|at| programs[*at].measured).sum();
        before += problem.error_of_operations(&held, &start_of(constants)) * cycles;
        after += problem.error_of_operations(&held, &values) * cycles;
        measured += cycles;
    }
    let before = share_of(before, measured);
    let after = share_of(after, measured);
    Some(HeldOutError { folds, before, after })
}

fn share_of(sum: f64, whole: f64) -> f64 {
    if whole > 0.0 { sum / whole } else { 0.0 }
}

impl<'a> FitProblem<'a> {
    fn new(programs: &'a [AlignedProgram], constants: &'a [FitConstant], rows: Vec<usize>) -> Self {
        let total: f64 = rows.iter().map(|at| programs[*at].measured).sum();
        let least = (total * LEAST_SHARE).max(1.0);
        let scale = programs.iter().map(|of| 1.0 / of.measured.max(least)).collect();
        Self { constants, rows, programs, scale }
    }

    fn slope(&self, row: usize, constant: usize) -> f64 {
        self.constants[constant].slopes.get(row).copied().unwrap_or(0.0)
    }

    /// Cycles of a program with the constants at `values`.
    fn predicted(&self, row: usize, values: &[f64]) -> f64 {
        let changes = values
            .iter()
            .enumerate()
            .map(|(at, value)| self.slope(row, at) * (value - self.constants[at].value));
        self.programs[row].simulated + changes.sum::<f64>()
    }

    /// Relative residual of a program with the constants at `values`.
    fn residual(&self, row: usize, values: &[f64]) -> f64 {
        (self.programs[row].measured - self.predicted(row, values)) * self.scale[row]
    }

    /// Sum of the absolute residuals of operations, divided by their measured cycles.
    fn error_of_operations(&self, rows: &[usize], values: &[f64]) -> f64 {
        let operations = rows.iter().map(|at| self.programs[*at].operation + 1).max().unwrap_or(0);
        let mut residuals = vec![0.0; operations];
        let mut measured = 0.0;
        for &row in rows {
            let program = &self.programs[row];
            residuals[program.operation] += program.measured - self.predicted(row, values);
            measured += program.measured;
        }
        let sum: f64 = residuals.iter().map(|residual: &f64| residual.abs()).sum();
        share_of(sum, measured)
    }

    /// The result of each constant.
    fn solve(&self) -> Vec<ConstantState> {
        let mut states = self.dependencies();
        loop {
            let free: Vec<usize> = (0..states.len())
                .filter(|at| matches!(states[*at], ConstantState::Fitted { .. }))
                .collect();
            let (values, errors) = self.reweighted(&free);
            // The most uncertain constant is dropped first: without it the others may be well
            // determined.
            let vague = (0..free.len())
                .map(|place| {
                    let constant = &self.constants[free[place]];
                    let width = (constant.most - constant.least).max(f64::MIN_POSITIVE);
                    (place, 2.0 * errors[place] / width)
                })
                .filter(|(_, share)| *share > 0.5 || share.is_nan())
                .max_by(|a, b| a.1.total_cmp(&b.1));
            if let Some((place, _)) = vague {
                states[free[place]] = ConstantState::TooWeak { error: errors[place] };
                continue;
            }
            for (place, &at) in free.iter().enumerate() {
                let constant = &self.constants[at];
                let fitted = values[at];
                let rounded = if constant.whole { fitted.round() } else { significant(fitted) };
                if let ConstantState::Fitted { value, error, at_bound, .. } = &mut states[at] {
                    *value = rounded.clamp(constant.least, constant.most);
                    *error = errors[place];
                    *at_bound = *value <= constant.least || *value >= constant.most;
                }
            }
            return states;
        }
    }

    /// Finds the constants that can be separated: the one with the largest effects first, then
    /// each whose effects are independent of those before (Gram-Schmidt with pivots).
    fn dependencies(&self) -> Vec<ConstantState> {
        let columns: Vec<Vec<f64>> = (0..self.constants.len()).map(|at| self.column(at)).collect();
        let norms: Vec<f64> = columns.iter().map(|column| norm(column)).collect();
        let mut states: Vec<Option<ConstantState>> = norms
            .iter()
            .map(|norm| if *norm <= 0.0 { Some(ConstantState::WithoutEffect) } else { None })
            .collect();
        let mut rest = columns.clone();
        let mut basis: Vec<(usize, Vec<f64>)> = Vec::new();
        loop {
            let open: Vec<usize> = (0..states.len()).filter(|at| states[*at].is_none()).collect();
            let next =
                open.iter().copied().max_by(|a, b| norm(&rest[*a]).total_cmp(&norm(&rest[*b])));
            let Some(next) = next else { break };
            let length = norm(&rest[next]);
            if length <= DEPENDENT * norms[next] {
                let names = self.same_effects(&columns[next], &basis, &columns);
                for at in names.iter().copied() {
                    if let Some(ConstantState::Fitted { instead_of, .. }) = &mut states[at] {
                        instead_of.push(self.constants[next].title.clone());
                    }
                }
                let titles = names.iter().map(|at| self.constants[*at].title.clone()).collect();
                states[next] = Some(ConstantState::OnlyTogether(titles));
                continue;
            }
            let direction: Vec<f64> = rest[next].iter().map(|of| of / length).collect();
            for column in &mut rest {
                let along = dot(column, &direction);
                column.iter_mut().zip(&direction).for_each(|(of, by)| *of -= along * by);
            }
            basis.push((next, direction));
            states[next] = Some(ConstantState::to_be_fitted());
        }
        states.into_iter().map(|state| state.unwrap_or(ConstantState::WithoutEffect)).collect()
    }

    /// The constants whose effects overlap most with the shared effects of a dependent column.
    fn same_effects(
        &self,
        column: &[f64],
        basis: &[(usize, Vec<f64>)],
        columns: &[Vec<f64>],
    ) -> Vec<usize> {
        let own = norm(column);
        let mut similar = Vec::new();
        for (at, _) in basis {
            let other = &columns[*at];
            let likeness = (dot(column, other) / (own * norm(other))).abs();
            if likeness > 0.1 {
                similar.push(*at);
            }
        }
        similar
    }

    /// The effect of a constant on the relative cycles of programs, for a change by its own value,
    /// or by a tenth of its bounds if it is 0.
    fn column(&self, at: usize) -> Vec<f64> {
        let constant = &self.constants[at];
        let unit = match constant.value.abs() {
            value if value > 0.0 => value,
            _ => 0.1 * (constant.most - constant.least),
        };
        self.rows.iter().map(|row| self.slope(*row, at) * self.scale[*row] * unit).collect()
    }

    /// Values of all constants with the `free` ones fitted, and the standard errors of these.
    fn reweighted(&self, free: &[usize]) -> (Vec<f64>, Vec<f64>) {
        let mut values = start_of(self.constants);
        let mut errors = vec![f64::NAN; free.len()];
        if free.is_empty() || self.rows.is_empty() {
            return (values, errors);
        }
        let mut weights = vec![1.0; self.rows.len()];
        for _ in 0..REWEIGHTED {
            let matrix = self.normal_matrix(free, &weights);
            self.descend(free, &matrix, &weights, &mut values);
            for (weight, row) in weights.iter_mut().zip(&self.rows) {
                let residual = self.residual(*row, &values).abs();
                *weight = (HUBER / residual.max(f64::MIN_POSITIVE)).min(1.0);
            }
        }
        let squares = self.rows.iter().zip(&weights);
        let squares: f64 =
            squares.map(|(row, weight)| weight * self.residual(*row, &values).powi(2)).sum();
        let freedom = self.rows.len().saturating_sub(free.len());
        if freedom > 0 {
            let variance = squares / freedom as f64;
            let inverse = inverse_diagonal(&self.normal_matrix(free, &weights));
            for (place, error) in errors.iter_mut().enumerate() {
                *error = (variance * inverse[place]).sqrt();
            }
        }
        (values, errors)
    }

    /// The weighted products of the effects of constants.
    fn normal_matrix(&self, free: &[usize], weights: &[f64]) -> Array2<f64> {
        Array2::from_shape_fn((free.len(), free.len()), |(a, b)| {
            let rows = self.rows.iter().zip(weights);
            rows.map(|(row, weight)| {
                let first = self.slope(*row, free[a]);
                let second = self.slope(*row, free[b]);
                weight * first * second * self.scale[*row].powi(2)
            })
            .sum()
        })
    }

    /// Least squares within bounds, one constant at a time until none changes.
    fn descend(&self, free: &[usize], matrix: &Array2<f64>, weights: &[f64], values: &mut [f64]) {
        let start = start_of(self.constants);
        let target: Vec<f64> = free
            .iter()
            .map(|at| {
                let rows = self.rows.iter().zip(weights);
                rows.map(|(row, weight)| {
                    let gap = self.programs[*row].measured - self.predicted(*row, &start);
                    weight * self.slope(*row, *at) * gap * self.scale[*row].powi(2)
                })
                .sum()
            })
            .collect();
        for _ in 0..SWEEPS {
            let mut moved: f64 = 0.0;
            for (place, &at) in free.iter().enumerate() {
                let constant = &self.constants[at];
                let own = matrix[[place, place]];
                if own <= 0.0 {
                    continue;
                }
                let others: f64 = free
                    .iter()
                    .enumerate()
                    .filter(|(other, _)| *other != place)
                    .map(|(other, of)| matrix[[place, other]] * (values[*of] - start[*of]))
                    .sum();
                let best = start[at] + (target[place] - others) / own;
                let next = best.clamp(constant.least, constant.most);
                moved = moved.max((next - values[at]).abs() / (constant.most - constant.least));
                values[at] = next;
            }
            if moved < 1e-9 {
                return;
            }
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn norm(column: &[f64]) -> f64 {
    dot(column, column).sqrt()
}

/// The diagonal of the inverse of a matrix, by Gauss-Jordan elimination; infinite if there is no
/// inverse.
fn inverse_diagonal(matrix: &Array2<f64>) -> Vec<f64> {
    let size = matrix.nrows();
    // Scaled to a unit diagonal: rates and cycles differ by orders of magnitude.
    let units = matrix.diag().mapv(|own| own.max(f64::MIN_POSITIVE).sqrt());
    let mut left = Array2::from_shape_fn((size, size), |(row, column)| {
        matrix[[row, column]] / (units[row] * units[column])
    });
    let mut right = Array2::<f64>::eye(size);
    for pivot in 0..size {
        let best = (pivot..size)
            .max_by(|a, b| left[[*a, pivot]].abs().total_cmp(&left[[*b, pivot]].abs()));
        let best = best.unwrap_or(pivot);
        let own = left[[best, pivot]];
        if own.abs() < 1e-12 {
            return vec![f64::INFINITY; size];
        }
        let factors = left.column(pivot).to_owned();
        for half in [&mut left, &mut right] {
            for column in 0..size {
                half.swap([pivot, column], [best, column]);
            }
            let taken = &half.row(pivot) / own;
            half.row_mut(pivot).assign(&taken);
            for row in (0..size).filter(|row| *row != pivot) {
                let factor = if row == best { factors[pivot] } else { factors[row] };
                half.row_mut(row).scaled_add(-factor, &taken);
            }
        }
    }
    (0..size).map(|at| (right[[at, at]] / units[at].powi(2)).max(0.0)).collect()
}

/// A number rounded to six significant digits: more would suggest false precision.
fn significant(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_report::ProgramKind;
    use tilescope_report::units::ProgramId;

    fn constant(title: &str, value: f64, most: f64, slopes: &[f64]) -> FitConstant {
        FitConstant {
            key: title.to_owned(),
            title: title.to_owned(),
            value,
            least: 0.0,
            most,
            whole: false,
            slopes: slopes.to_vec(),
        }
    }

    /// Programs of one operation each that take `base` cycles in addition to those of the
    /// constants.
    fn programs(base: &[f64], measured: impl Fn(usize) -> f64) -> Vec<AlignedProgram> {
        let program = |(at, simulated): (usize, &f64)| AlignedProgram {
            simulated_program: ProgramId(at as u32),
            kind: ProgramKind::OnTileExecute,
            steps: 1,
            measured: measured(at),
            simulated: *simulated,
            operation: at,
        };
        base.iter().enumerate().map(program).collect()
    }

    const BASE: [f64; 8] = [1000.0, 1500.0, 900.0, 4000.0, 2500.0, 700.0, 3000.0, 1200.0];

    fn state<'a>(result: &'a FitResult, title: &str) -> &'a ConstantState {
        &result.constants.iter().find(|of| of.constant.title == title).unwrap().state
    }

    fn value(result: &FitResult, title: &str) -> f64 {
        match state(result, title) {
            ConstantState::Fitted { value, .. } => *value,
            other => panic!("{title}: {other:?}"),
        }
    }

    #[test]
    fn constants_are_found_again_through_noise_and_an_outlier() {
        let (a, b) =
            ([1.0, 2.0, 1.0, 4.0, 1.0, 1.0, 3.0, 2.0], [0.0, 9.0, 0.0, 1.0, 7.0, 2.0, 0.0, 5.0]);
        let noise = [0.002, -0.001, 0.0015, 0.001, -0.002, 0.0005, 0.0, -0.001];
        let measured = |at: usize| {
            let exact = BASE[at] + a[at] * (410.0 - 320.0) + b[at] * (60.0 - 80.0);
            let outlier = if at == 5 { 3.0 } else { 1.0 };
            exact * (1.0 + noise[at]) * outlier
        };
        let constants = [constant("a", 320.0, 2000.0, &a), constant("b", 80.0, 500.0, &b)];
        let result = fit(&programs(&BASE, measured), &constants);
        assert!((value(&result, "a") - 410.0).abs() < 8.0, "{result:?}");
        assert!((value(&result, "b") - 60.0).abs() < 4.0, "{result:?}");
        let exact = |at: usize| BASE[at] + a[at] * 90.0 - b[at] * 20.0;
        let held_out = fit(&programs(&BASE, exact), &constants).held_out.unwrap();
        assert!(held_out.after < 1e-6 && held_out.before > 0.05, "{held_out:?}");
        assert_eq!(held_out.folds, 5);
    }

    #[test]
    fn constants_that_cannot_be_separated_are_reported_and_kept() {
        let (a, idle) = ([1.0, 2.0, 1.0, 4.0, 1.0, 1.0, 3.0, 2.0], [0.0; 8]);
        let twice = a.map(|slope| 2.0 * slope);
        let constants = [
            constant("a", 320.0, 2000.0, &a),
            constant("twin", 100.0, 2000.0, &twice),
            constant("idle", 7.0, 20.0, &idle),
        ];
        let result = fit(&programs(&BASE, |at| BASE[at] + 50.0 * a[at]), &constants);
        assert_eq!(state(&result, "idle"), &ConstantState::WithoutEffect);
        assert_eq!(state(&result, "twin"), &ConstantState::OnlyTogether(vec!["a".to_owned()]));
        let ConstantState::Fitted { value, instead_of, .. } = state(&result, "a") else { panic!() };
        assert!((value - 370.0).abs() < 0.01 && instead_of == &["twin".to_owned()]);
    }

    #[test]
    fn constants_below_the_noise_are_not_fitted() {
        let noise = [0.3, -0.2, 0.25, -0.3, 0.2, -0.25, 0.28, -0.22];
        let slopes = [0.01, 0.0, 0.0, 0.02, 0.0, 0.01, 0.0, 0.0];
        let measured = |at: usize| BASE[at] * (1.0 + noise[at]);
        let constants = [constant("weak", 5.0, 50.0, &slopes)];
        let result = fit(&programs(&BASE, measured), &constants);
        assert!(matches!(state(&result, "weak"), ConstantState::TooWeak { .. }), "{result:?}");
        assert_eq!(result.before, result.after);
    }

    #[test]
    fn bounds_are_kept_and_whole_numbers_stay_whole() {
        let slopes = [1.0; 8];
        let bounded = constant("a", 100.0, 150.0, &slopes);
        let result = fit(&programs(&BASE, |at| BASE[at] + 60.0), &[bounded]);
        let ConstantState::Fitted { value: 150.0, at_bound: true, .. } = state(&result, "a") else {
            panic!("{result:?}")
        };
        let whole = FitConstant { whole: true, ..constant("a", 100.0, 500.0, &slopes) };
        let result = fit(&programs(&BASE, |at| BASE[at] + 33.4), &[whole]);
        assert_eq!(value(&result, "a"), 133.0);
    }

    #[test]
    fn fits_without_programs_change_nothing() {
        let result = fit(&[], &[constant("a", 1.0, 2.0, &[])]);
        assert_eq!(state(&result, "a"), &ConstantState::WithoutEffect);
        assert_eq!((result.before, result.held_out), (0.0, None));
    }
}
