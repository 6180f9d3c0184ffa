//! The results of a search, as text and as JSON.

use crate::cli::command::CliError;
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use tilescope_analysis::insights::SpecChanges;
use tilescope_experiments::answers::{TuneAnswer, TuneStepAnswer};
use tilescope_experiments::objective::ScoreClass;
use tilescope_experiments::point::{Point, is_on_front};
use tilescope_experiments::strategies::guided::{DeadEnd, TunePath, TuneStep, Untried};
use tilescope_experiments::strategies::moves::{TuneSpace, changes_words};
use tilescope_experiments::trial::{TrialFigures, set_arguments};
use tilescope_experiments::trial_store::TrialStore;
use tilescope_report::units::percent;

/// Number of dead ends and points of the front that are printed; JSON has all.
const PRINTED: usize = 12;

/// The request of a search.
pub(super) struct TuneSummary<'a> {
    /// The name of the spec on the command line.
    pub name: &'a str,
    /// The changes of `--set`.
    pub overrides: &'a [String],
    pub space: &'a TuneSpace,
    /// The file for the resulting spec.
    pub file: Option<&'a Path>,
}

impl TuneSummary<'_> {
    /// The gain, in a line.
    pub(super) fn headline(&self, answer: &TuneAnswer) -> String {
        let objective = self.space.objective;
        let text = |point: &Point| {
            point.figures().map_or_else(String::new, |figures| objective.text(figures))
        };
        let best = text(&answer.best);
        if !answer.base.fits() {
            let words = objective.words();
            return format!("{}, tuned: now fits in memory, {words} {best}", self.name);
        }
        let gain = answer.gain.map_or_else(String::new, |gain| format!(", {}", change(gain)));
        let words = objective.words();
        let base = text(&answer.base);
        format!("{}, tuned: {words} {best} instead of {base}{gain}", self.name)
    }

    /// The reason why the end of the path misses the request.
    fn shortfall(&self, best: &Point) -> Option<&'static str> {
        let score = self.space.objective.score(best, &self.space.conditions);
        match score.map(|score| score.class) {
            Some(ScoreClass::Good) => None,
            Some(ScoreClass::MissesConditions) => Some("no tested spec meets all conditions"),
            _ => Some("no tested spec fits in memory"),
        }
    }

    /// The gain as a share of the objective; `None` if the original spec violated the conditions.
    fn gain(&self, path: &TunePath) -> Option<f64> {
        let score = |point: &Point| self.space.objective.score(point, &self.space.conditions);
        score(path.best())?.gain_over(score(&path.base)?)
    }

    /// The command that simulates a point, into a directory for each step.
    fn simulate_command(&self, step: usize, changes: &SpecChanges) -> String {
        // Words are left unquoted, because shells would remove the quotes.
        let plain = |(path, value): (&String, &Value)| match value {
            Value::String(word)
                if word.chars().all(|letter| letter.is_ascii_alphabetic() || letter == '_') =>
            {
                vec![format!("{path}={word}")]
            }
            _ => set_arguments(&[(path.clone(), value.clone())].into()).collect(),
        };
        let sets = self.overrides.iter().cloned().chain(changes.iter().flat_map(plain));
        let sets: String = sets.map(|set| format!(" --set {}", quoted(&set))).collect();
        format!("tilescope simulate {} -o step{step}{sets}", quoted(self.name))
    }

    /// All feasible points that no other point beats in every objective. Of equal points, the one
    /// with the fewest changes.
    fn front<'p>(&self, path: &TunePath, store: &'p TrialStore<'_>) -> Vec<&'p Point> {
        let mut points: Vec<&Point> = Vec::new();
        for (place, point) in store.points().iter().enumerate() {
            let conditions = &self.space.conditions;
            let misses = conditions.iter().any(|of| of.of_figures(point) == Some(false));
            if !misses && !path.beyond.contains(&place) {
                points.push(point);
            }
        }
        let on_front = is_on_front(points.iter().copied());
        let mut front: Vec<&Point> = points
            .into_iter()
            .zip(on_front)
            .filter(|(_, on)| *on)
            .map(|(point, _)| point)
            .collect();
        let time = |point: &Point| point.figures().and_then(TrialFigures::seconds_per_sample);
        front.sort_by(|a, b| {
            let order = time(a).partial_cmp(&time(b)).unwrap_or(std::cmp::Ordering::Equal);
            order.then(a.changes.len().cmp(&b.changes.len()))
        });
        let costs = |point: &Point| {
            let figures = point.figures();
            figures.map(|of| (of.seconds_per_sample(), of.fullest_tile_bytes, of.ipus))
        };
        let mut alike = Vec::new();
        front.retain(|point| {
            let is_new = !alike.contains(&costs(point));
            alike.push(costs(point));
            is_new
        });
        front
    }

    /// The complete answer, for printing, storing and reading.
    pub(super) fn answer(&self, path: &TunePath, store: &TrialStore<'_>) -> TuneAnswer {
        let step = |(number, step): (usize, &TuneStep)| TuneStepAnswer {
            step: step.clone(),
            simulate: self.simulate_command(number, &step.point.changes),
            compare: format!("tilescope compare step{} step{number}", number - 1),
        };
        let (simulations, simulated_now) = store.counts();
        TuneAnswer {
            spec: self.name.to_owned(),
            objective: self.space.objective.name().to_owned(),
            simulations,
            simulated_now,
            exhausted: path.exhausted,
            gain: self.gain(path),
            base: path.base.clone(),
            simulate: self.simulate_command(0, &path.base.changes),
            path: (1..).zip(&path.steps).map(step).collect(),
            best: path.best().clone(),
            dead_ends: path.dead_ends.clone(),
            untried: path.untried.clone(),
            skipped_proposals: path.skipped_proposals,
            unknown_proposals: store.unknown_proposals(),
            pareto_front: self.front(path, store).into_iter().cloned().collect(),
            shortfall: self.shortfall(path.best()).map(str::to_owned),
            fits_if_free: path.fits_if_free.clone(),
        }
    }

    /// Prints the path, then dead ends, unchanged keys and the Pareto front.
    pub(super) fn print(
        &self,
        answer: &TuneAnswer,
        output: &mut dyn Write,
    ) -> Result<(), CliError> {
        writeln!(output, "{}: {}", self.name, answer.base.figures_text())?;
        for (number, step) in (1..).zip(&answer.path) {
            self.print_step(number, &step.step, output)?;
        }
        let headline = answer.shortfall.clone().unwrap_or_else(|| self.headline(answer));
        writeln!(output, "\n{headline}")?;
        if let Some(found) = &answer.fits_if_free {
            let keys: Vec<String> = self
                .space
                .forbidden(&found.moved)
                .iter()
                .map(|key| format!("--free {key}"))
                .collect();
            writeln!(
                output,
                "It fits with {}: {}",
                found.moved.text(),
                found.point.figures_text()
            )?;
            writeln!(output, "  {} finds it", keys.join(" "))?;
        }
        let simulations = answer.simulations;
        let new = answer.simulated_now;
        let known = match simulations - new {
            0 => String::new(),
            known => format!(", {known} of them from the file of results"),
        };
        let end = if answer.exhausted {
            "nothing is left to test"
        } else {
            "a larger --budget may find more"
        };
        let plural = plural(simulations);
        let skipped = answer.skipped_proposals;
        writeln!(output, "{simulations} simulation{plural}{known}; {end}")?;
        if skipped > 0 {
            writeln!(
                output,
                "{skipped} proposals beside the path were skipped: they cannot beat it"
            )?;
        }
        if answer.unknown_proposals > 0 {
            let points = answer.unknown_proposals;
            let verb = if points == 1 { "is" } else { "are" };
            let plural = if points == 1 { "" } else { "s" };
            writeln!(
                output,
                "Proposals at {points} point{plural} {verb} unknown: their process failed"
            )?;
        }
        if let Some(file) = self.file.filter(|_| answer.shortfall.is_none()) {
            writeln!(output, "The spec is in {}", file.display())?;
        }
        if !answer.path.is_empty() {
            writeln!(output, "\nTo compare")?;
            writeln!(output, "  {}", answer.simulate)?;
        }
        for step in &answer.path {
            writeln!(output, "  {}", step.simulate)?;
            writeln!(output, "  {}", step.compare)?;
        }
        print_rest(answer, output)
    }

    fn print_step(
        &self,
        number: usize,
        step: &TuneStep,
        output: &mut dyn Write,
    ) -> Result<(), CliError> {
        writeln!(output, "\n{number:2}. {}", step.moved.text())?;
        for reason in &step.moved.reasons {
            writeln!(output, "    {}", reason.sentence)?;
            if !reason.cost.is_empty() {
                writeln!(output, "    cost: {}", reason.cost)?;
            }
        }
        let bound = step.moved.bound().filter(|_| self.space.objective.is_time());
        let bound = bound.map_or_else(String::new, |bound| format!(" (up to {})", percent(bound)));
        let gain = step.gain.map_or_else(|| "now meets the request".to_owned(), change);
        writeln!(output, "    {gain}{bound}: {}", step.point.figures_text())?;
        Ok(())
    }
}

fn print_rest(answer: &TuneAnswer, output: &mut dyn Write) -> Result<(), CliError> {
    if !answer.dead_ends.is_empty() {
        writeln!(output, "\nDead ends")?;
    }
    for end in answer.dead_ends.iter().take(PRINTED) {
        let after = end.after;
        let text = end.moved.text();
        writeln!(output, "  after step {after}: {text}: {}", outcome_text(end))?;
    }
    more(answer.dead_ends.len(), output)?;
    let fixed: Vec<&Untried> =
        answer.untried.iter().filter(|untried| !untried.forbidden.is_empty()).collect();
    if !fixed.is_empty() {
        writeln!(output, "\nNot tested")?;
    }
    for Untried { moved, forbidden } in fixed {
        let bound = moved.bound();
        let bound = bound.map_or_else(String::new, |bound| format!(", up to {}", percent(bound)));
        let keys = forbidden.iter().map(|key| format!("--free {key}")).collect::<Vec<_>>();
        writeln!(output, "  {}{bound}: {} tries it", moved.text(), keys.join(" "))?;
    }
    let front = &answer.pareto_front;
    if !front.is_empty() {
        writeln!(output, "\nPareto front of time, memory and IPUs")?;
    }
    for point in front.iter().take(PRINTED) {
        let changes = match changes_words(&point.changes) {
            none if none.is_empty() => "the unchanged spec".to_owned(),
            changes => changes,
        };
        writeln!(output, "  {}: {changes}", point.figures_text())?;
    }
    more(front.len(), output)
}

/// Prints the number of omitted lines.
fn more(all: usize, output: &mut dyn Write) -> Result<(), CliError> {
    if all > PRINTED {
        writeln!(output, "  and {} more: --json has all", all - PRINTED)?;
    }
    Ok(())
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// A gain as a change: `-28.9 %`.
fn change(gain: f64) -> String {
    let text = format!("{:+.1} %", -100.0 * gain);
    if text == "-0.0 %" { "+0.0 %".to_owned() } else { text }
}

/// The result of a change without a gain.
fn outcome_text(end: &DeadEnd) -> String {
    match (end.point.fits(), end.point.problem(), end.gain) {
        (true, _, Some(gain)) if gain.abs() < 0.0005 => "no effect".to_owned(),
        (true, _, Some(gain)) => change(gain),
        (true, _, None) => "does not meet the request".to_owned(),
        (false, "", Some(gain)) => {
            format!("does not fit in memory, fullest tile {}", change(gain))
        }
        (false, "", None) => "does not fit in memory".to_owned(),
        (false, problem, _) => format!("{}: {problem}", end.point.outcome_words()),
    }
}

/// A word quoted for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "._-/=,:+@%".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
