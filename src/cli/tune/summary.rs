//! What a search found, in words and as JSON.

use super::moves::{TuneMove, TuneSpace, changes_words};
use super::objective::ScoreClass;
use super::trial_store::TrialStore;
use super::tuner::{DeadEnd, TunePath, TuneStep, Untried};
use crate::cli::CliError;
use crate::cli::search::{Point, is_on_front};
use crate::cli::trials::{SpecChanges, TrialFigures, set_arguments};
use serde_json::{Map, Value, json};
use std::io::Write;
use std::path::Path;
use tilescope_report::units::{NumberFormat, percent, seconds};

/// Dead ends, and points of the front, that are printed; JSON has all.
const PRINTED: usize = 12;

/// What a search found.
pub(super) struct TuneSummary<'a> {
    /// The spec as the user names it.
    pub name: &'a str,
    /// What `--set` changes of it.
    pub overrides: &'a [String],
    pub space: &'a TuneSpace,
    pub store: &'a TrialStore,
    pub path: &'a TunePath,
    /// Where the spec that was found is written to.
    pub file: Option<&'a Path>,
}

impl TuneSummary<'_> {
    /// What was gained, in a line.
    pub(super) fn headline(&self) -> String {
        let (base, best) = (&self.path.base, self.path.best());
        let objective = self.space.objective;
        let text = |point: &Point| {
            point.figures().map_or_else(String::new, |figures| objective.text(figures))
        };
        if !base.fits() {
            let (words, value) = (objective.words(), text(best));
            return format!("{}, tuned: it fits in memory, with {words} {value}", self.name);
        }
        let gain = self.gain().map_or_else(String::new, |gain| format!(", {}", change(gain)));
        format!(
            "{}, tuned: {} {} instead of {}{gain}",
            self.name,
            objective.words(),
            text(best),
            text(base),
        )
    }

    /// Why the end of the path is not what was asked for.
    pub(super) fn shortfall(&self) -> Option<&'static str> {
        let score = self.space.objective.score(self.path.best(), &self.space.conditions);
        match score.map(|score| score.class) {
            Some(ScoreClass::Good) => None,
            Some(ScoreClass::MissesConditions) => {
                Some("nothing that was tried meets all conditions")
            }
            _ => Some("nothing that was tried makes it fit in memory"),
        }
    }

    /// The share of the objective that was gained; nothing where the spec did not meet what was
    /// asked of it.
    fn gain(&self) -> Option<f64> {
        let score = |point: &Point| self.space.objective.score(point, &self.space.conditions);
        score(self.path.best())?.gain_over(score(&self.path.base)?)
    }

    /// How to simulate a point: into a directory for each step.
    fn simulate_command(&self, step: usize, changes: &SpecChanges) -> String {
        // Words need no quotes, which shells take for their own.
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

    /// How to see what a step changed.
    fn compare_command(step: usize) -> String {
        format!("tilescope compare step{} step{step}", step - 1)
    }

    /// All points that fit, and that none is better than in everything; the fewest changes where
    /// several are alike.
    fn front(&self) -> Vec<&Point> {
        let is_wanted = |point: &&Point| {
            self.space.conditions.iter().all(|condition| condition.of_figures(point) != Some(false))
        };
        let points: Vec<&Point> = self.store.points().iter().filter(is_wanted).collect();
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

    /// `{spec, objective, simulations, base, path, best, dead_ends, untried, pareto_front, …}`
    pub(super) fn json(&self) -> Value {
        let path = self.path;
        let moved = |by: &TuneMove| -> Map<String, Value> {
            [("change".to_owned(), json!(by.changes)), ("reasons".to_owned(), json!(by.reasons))]
                .into_iter()
                .collect()
        };
        let step = |(number, step): (usize, &TuneStep)| {
            let mut json = moved(&step.moved);
            json.insert("gain".to_owned(), json!(step.gain));
            json.insert("point".to_owned(), Value::Object(step.point.json()));
            json.insert(
                "simulate".to_owned(),
                json!(self.simulate_command(number, &step.point.changes)),
            );
            json.insert("compare".to_owned(), json!(Self::compare_command(number)));
            Value::Object(json)
        };
        let dead_end = |end: &DeadEnd| {
            let mut json = moved(&end.moved);
            json.insert("after_step".to_owned(), json!(end.after));
            json.insert("gain".to_owned(), json!(end.gain));
            json.insert("point".to_owned(), Value::Object(end.point.json()));
            Value::Object(json)
        };
        let untried = |untried: &Untried| {
            let mut json = moved(&untried.moved);
            json.insert("fixed".to_owned(), json!(untried.forbidden));
            Value::Object(json)
        };
        let (simulations, new) = self.store.counts();
        json!({
            "spec": self.name,
            "objective": self.space.objective.name(),
            "simulations": simulations,
            "simulated_now": new,
            "exhausted": path.exhausted,
            "gain": self.gain(),
            "base": path.base.json(),
            "simulate": self.simulate_command(0, &path.base.changes),
            "path": (1..).zip(&path.steps).map(step).collect::<Vec<_>>(),
            "best": path.best().json(),
            "dead_ends": path.dead_ends.iter().map(dead_end).collect::<Vec<_>>(),
            "untried": path.untried.iter().map(untried).collect::<Vec<_>>(),
            "hopeless": path.hopeless,
            "untold": self.store.untold(),
            "pareto_front": self.front().into_iter().map(Point::json).collect::<Vec<_>>(),
            "shortfall": self.shortfall(),
        })
    }

    /// The path, then dead ends, what was left alone and the Pareto front.
    pub(super) fn print(&self, output: &mut dyn Write) -> Result<(), CliError> {
        let path = self.path;
        writeln!(output, "{}: {}", self.name, figures_text(&path.base))?;
        for (number, step) in (1..).zip(&path.steps) {
            self.print_step(number, step, output)?;
        }
        writeln!(output, "\n{}", self.shortfall().map_or_else(|| self.headline(), str::to_owned))?;
        let (simulations, new) = self.store.counts();
        let known = match simulations - new {
            0 => String::new(),
            known => format!(", {known} of them from the file of results"),
        };
        let end = match path.exhausted {
            true => "nothing is left to try",
            false => "more may be found with a larger --budget",
        };
        let (plural, hopeless) = (plural(simulations), path.hopeless);
        writeln!(output, "{simulations} simulation{plural}{known}; {end}")?;
        if hopeless > 0 {
            writeln!(
                output,
                "{hopeless} proposals beside the path could not beat it, by their bounds"
            )?;
        }
        if self.store.untold() > 0 {
            let points = self.store.untold();
            let verb = if points == 1 { "is" } else { "are" };
            let plural = if points == 1 { "" } else { "s" };
            writeln!(
                output,
                "Proposals at {points} point{plural} {verb} not known: the process asked for them died"
            )?;
        }
        if let Some(file) = self.file.filter(|_| self.shortfall().is_none()) {
            writeln!(output, "The spec is in {}", file.display())?;
        }
        if !path.steps.is_empty() {
            writeln!(output, "\nTo compare")?;
            writeln!(output, "  {}", self.simulate_command(0, &path.base.changes))?;
        }
        for (number, step) in (1..).zip(&path.steps) {
            writeln!(output, "  {}", self.simulate_command(number, &step.point.changes))?;
            writeln!(output, "  {}", Self::compare_command(number))?;
        }
        self.print_rest(output)
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
            if !reason.price.is_empty() {
                writeln!(output, "    price: {}", reason.price)?;
            }
        }
        let bound = step.moved.bound().filter(|_| self.space.objective.is_time());
        let bound =
            bound.map_or_else(String::new, |bound| format!(" (at most {})", percent(bound)));
        let gain = step.gain.map_or_else(|| "now meets what was asked".to_owned(), change);
        writeln!(output, "    {gain}{bound}: {}", figures_text(&step.point))?;
        Ok(())
    }

    fn print_rest(&self, output: &mut dyn Write) -> Result<(), CliError> {
        let path = self.path;
        if !path.dead_ends.is_empty() {
            writeln!(output, "\nDead ends")?;
        }
        for end in path.dead_ends.iter().take(PRINTED) {
            let (after, text) = (end.after, end.moved.text());
            writeln!(output, "  after step {after}: {text}: {}", outcome_text(end))?;
        }
        more(path.dead_ends.len(), output)?;
        let fixed: Vec<&Untried> =
            path.untried.iter().filter(|untried| !untried.forbidden.is_empty()).collect();
        if !fixed.is_empty() {
            writeln!(output, "\nLeft alone")?;
        }
        for Untried { moved, forbidden } in fixed {
            let bound = moved.bound();
            let bound =
                bound.map_or_else(String::new, |bound| format!(", up to {}", percent(bound)));
            let keys = forbidden.iter().map(|key| format!("--free {key}")).collect::<Vec<_>>();
            writeln!(output, "  {}{bound}: {} tries it", moved.text(), keys.join(" "))?;
        }
        let front = self.front();
        if !front.is_empty() {
            writeln!(output, "\nPareto front of time, memory and IPUs")?;
        }
        for point in front.iter().take(PRINTED) {
            let changes = match changes_words(&point.changes) {
                none if none.is_empty() => "the spec as it is".to_owned(),
                changes => changes,
            };
            writeln!(output, "  {}: {changes}", figures_text(point))?;
        }
        more(front.len(), output)
    }
}

/// Says how many lines are left out.
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

/// What came of a change that was tried in vain.
fn outcome_text(end: &DeadEnd) -> String {
    match (end.point.fits(), end.point.problem(), end.gain) {
        (true, _, Some(gain)) if gain.abs() < 0.0005 => "no effect".to_owned(),
        (true, _, Some(gain)) => change(gain),
        (true, _, None) => "does not meet what was asked".to_owned(),
        (false, "", Some(gain)) => {
            format!("does not fit in memory, fullest tile {}", change(gain))
        }
        (false, "", None) => "does not fit in memory".to_owned(),
        (false, problem, _) => format!("{}: {problem}", end.point.outcome_words()),
    }
}

/// `1.61 us a sample, fullest tile 211 KiB, 4 IPUs`
fn figures_text(point: &Point) -> String {
    let Some(figures) = point.figures() else { return point.outcome_words().to_owned() };
    let time = figures.seconds_per_sample();
    let time = time.map_or_else(
        || "does not fit in memory".to_owned(),
        |time| format!("{} a sample", seconds(time)),
    );
    let memory = NumberFormat::default().bytes(figures.fullest_tile_bytes.0);
    let ipus = figures.ipus;
    format!("{time}, fullest tile {memory}, {ipus} IPU{}", plural(ipus as usize))
}

/// A word of a shell.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "._-/=,:+@%".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}
