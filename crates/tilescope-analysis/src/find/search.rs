//! Matching a query against everything that has a name.

use super::catalogue::{Catalogue, Item, Thing};
use super::parse::regex;
use super::query::{Amount, Comparison, Pattern, Query, Source, Span, Term, Test};
use crate::trace::{Runs, each_step, moved};
use std::collections::{BTreeMap, HashMap, HashSet};
use tilescope_report::trace::LaneStep;
use tilescope_report::units::{ProgramId, TileRange, TileRuns, VariableId, VertexTypeId};
use tilescope_report::{Report, ReportError, VariableFilter};

/// Totals of one list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Totals {
    pub things: u64,
    /// Sum of their counts.
    pub count: u64,
    /// Sum of their cycles, where they have any.
    pub cycles: u64,
    /// Sum of their bytes, where they have any.
    pub bytes: u64,
}

/// The results of a query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The things, list by list, the dearest first. Steps count as far as they match.
    pub hits: Vec<Item>,
    /// Sums by list; lists without a hit are left out.
    pub totals: BTreeMap<Source, Totals>,
    /// Whether all steps of the trace were looked at.
    pub complete: bool,
}

/// Everything that a query asks for.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn find(report: &Report, all: &Catalogue, query: &Query) -> Result<Found, ReportError> {
    let tests = Tests::new(query);
    let places = Places::new(report, all, &tests)?;
    let mut hits: Vec<Item> = Vec::new();
    let mut steps: HashMap<ProgramId, Item> = HashMap::new();
    for item in all.items.iter().filter(|item| tests.names(item) && places.hold(item)) {
        match item.thing {
            Thing::Steps(program) => drop(steps.insert(program, item.clone())),
            _ if tests.amounts(item, &Amount::ALL) => hits.push(item.clone()),
            _ => {}
        }
    }
    let mut complete = all.runs.complete || all.runs.runs.is_empty();
    let sums = step_sums(report, all, &tests, &steps, &mut complete)?;
    for (program, sum) in sums {
        let Some(item) = steps.remove(&program) else { continue };
        let (cycles, bytes) = (Some(sum.cycles), Some(sum.bytes));
        let item = Item { count: sum.steps, cycles, bytes, ..item };
        hits.extend(tests.amounts(&item, &[Amount::Count]).then_some(item));
    }
    let place = |item: &Item| Source::ALL.iter().position(|of| *of == item.thing.source());
    let dear = |item: &Item| std::cmp::Reverse((item.cycles, item.bytes, item.count));
    hits.sort_by_cached_key(|item| (place(item), dear(item), item.thing));
    let mut totals: BTreeMap<Source, Totals> = BTreeMap::new();
    for hit in &hits {
        let sum = totals.entry(hit.thing.source()).or_default();
        sum.things += 1;
        sum.count += hit.count;
        sum.cycles = sum.cycles.saturating_add(hit.cycles.unwrap_or(0));
        sum.bytes = sum.bytes.saturating_add(hit.bytes.unwrap_or(0));
    }
    Ok(Found { hits, totals, complete })
}

/// The figure of each single step, or of each thing, of one list of results: what statistics are
/// made of. Steps are those of `found`, on the IPUs and within the bounds of `query`.
///
/// # Errors
/// A trace that cannot be read.
pub fn values(
    report: &Report,
    query: &Query,
    found: &Found,
    source: Source,
    amount: Amount,
) -> Result<Vec<u64>, ReportError> {
    let hits = found.hits.iter().filter(|hit| hit.thing.source() == source);
    if source != Source::Steps || amount == Amount::Count {
        return Ok(hits.filter_map(|hit| figure(hit, amount)).collect());
    }
    let tests = Tests::new(query);
    let wanted: HashSet<ProgramId> = hits.filter_map(program_of).collect();
    let mut values = Vec::new();
    if let Some(trace) = report.trace()? {
        each_step(&trace, |lane, step| {
            let is_wanted = step.program.is_some_and(|program| wanted.contains(&program));
            if is_wanted && tests.on_ipu(lane.ipu) && tests.step(step) {
                values.push(match amount {
                    Amount::Bytes => moved(step),
                    Amount::Cycles | Amount::Count => step.range.length(),
                });
            }
        })?;
    }
    Ok(values)
}

fn program_of(item: &Item) -> Option<ProgramId> {
    match item.thing {
        Thing::Steps(program) | Thing::Program(program) => Some(program),
        _ => None,
    }
}

/// Sums over the steps of programs that match.
fn step_sums(
    report: &Report,
    all: &Catalogue,
    tests: &Tests<'_>,
    steps: &HashMap<ProgramId, Item>,
    complete: &mut bool,
) -> Result<BTreeMap<ProgramId, Runs>, ReportError> {
    let mut sums: BTreeMap<ProgramId, Runs> = BTreeMap::new();
    if !tests.of_steps() {
        let wanted = all
            .runs
            .runs
            .iter()
            .filter(|((ipu, program), _)| steps.contains_key(program) && tests.on_ipu(*ipu));
        wanted.for_each(|((_, program), runs)| sums.entry(*program).or_default().add(runs));
        return Ok(sums);
    }
    let Some(trace) = report.trace()? else { return Ok(sums) };
    *complete = each_step(&trace, |lane, step| {
        let Some(program) = step.program.filter(|program| steps.contains_key(program)) else {
            return;
        };
        if tests.on_ipu(lane.ipu) && tests.step(step) {
            sums.entry(program).or_default().add_step(step);
        }
    })?;
    Ok(sums)
}

/// A pattern made ready to be matched often.
enum Matcher {
    Holds(String),
    Is(String),
    Regex(regex::Regex),
}

impl Matcher {
    fn new(pattern: &Pattern) -> Self {
        match pattern {
            Pattern::Holds(text) => Self::Holds(text.to_lowercase()),
            Pattern::Is(text) => Self::Is(text.clone()),
            // The parser has compiled it before; text made by hand is taken as it is.
            Pattern::Regex(text) => {
                regex(text).map_or_else(|_| Self::Is(text.clone()), Self::Regex)
            }
        }
    }

    fn matches(&self, text: &str) -> bool {
        match self {
            Self::Holds(wanted) if text.is_ascii() => holds_ascii(text, wanted),
            Self::Holds(wanted) => text.to_lowercase().contains(wanted),
            Self::Is(wanted) => text == wanted,
            Self::Regex(regex) => regex.is_match(text),
        }
    }
}

/// Whether ASCII `text` holds `wanted`, which is in lower case: the same as comparing in lower
/// case, without a copy for every name.
fn holds_ascii(text: &str, wanted: &str) -> bool {
    let (text, wanted) = (text.as_bytes(), wanted.as_bytes());
    wanted.is_empty() || text.windows(wanted.len()).any(|part| part.eq_ignore_ascii_case(wanted))
}

/// The terms of a query, by what they ask.
struct Tests<'q> {
    terms: Vec<(&'q Term, Option<Matcher>)>,
}

impl<'q> Tests<'q> {
    fn new(query: &'q Query) -> Self {
        let matcher = |term: &Term| match &term.test {
            Test::Name(pattern) | Test::Type(pattern) => Some(Matcher::new(pattern)),
            _ => None,
        };
        Self { terms: query.terms.iter().map(|term| (term, matcher(term))).collect() }
    }

    /// Whether name, kind and list of a thing are right.
    fn names(&self, item: &Item) -> bool {
        self.terms.iter().all(|(term, matcher)| {
            let matches = |text| matcher.as_ref().is_none_or(|matcher| matcher.matches(text));
            let holds = match &term.test {
                Test::Name(_) => matches(&item.name),
                Test::Type(_) => matches(&item.kind),
                Test::In(source) => *source == item.thing.source(),
                Test::Ipu(_) | Test::Tile(_) | Test::Amount(..) => return true,
            };
            holds != term.negated
        })
    }

    /// Whether the figures of a thing are right; it must have those that are asked for.
    fn amounts(&self, item: &Item, which: &[Amount]) -> bool {
        self.conditions().filter(|(_, amount, ..)| which.contains(amount)).all(
            |(negated, amount, comparison, limit)| {
                figure(item, amount).is_some_and(|value| comparison.holds(value, limit) != negated)
            },
        )
    }

    /// Whether there are conditions on single steps.
    fn of_steps(&self) -> bool {
        self.conditions().any(|(_, amount, ..)| amount != Amount::Count)
    }

    /// Whether a single step's figures are right.
    fn step(&self, step: &LaneStep) -> bool {
        self.conditions().all(|(negated, amount, comparison, limit)| {
            let value = match amount {
                Amount::Cycles => step.range.length(),
                Amount::Bytes => moved(step),
                Amount::Count => return true,
            };
            comparison.holds(value, limit) != negated
        })
    }

    fn on_ipu(&self, ipu: u32) -> bool {
        self.terms.iter().all(|(term, _)| match &term.test {
            Test::Ipu(spans) => holds(spans, ipu) != term.negated,
            _ => true,
        })
    }

    fn conditions(&self) -> impl Iterator<Item = (bool, Amount, Comparison, u64)> {
        self.terms.iter().filter_map(|(term, _)| match term.test {
            Test::Amount(amount, comparison, value) => {
                Some((term.negated, amount, comparison, value))
            }
            _ => None,
        })
    }
}

fn figure(item: &Item, amount: Amount) -> Option<u64> {
    match amount {
        Amount::Cycles => item.cycles,
        Amount::Bytes => item.bytes,
        Amount::Count => Some(item.count),
    }
}

/// A term on places, and what lies there.
struct Place {
    negated: bool,
    /// IPUs, of a term on IPUs.
    ipus: Option<Vec<Span>>,
    variables: HashSet<VariableId>,
    programs: HashSet<ProgramId>,
    vertices: HashSet<VertexTypeId>,
}

/// The tiles left by terms on IPUs and tiles.
struct Places<'a> {
    all: &'a Catalogue,
    terms: Vec<Place>,
}

impl<'a> Places<'a> {
    fn new(report: &Report, all: &'a Catalogue, tests: &Tests<'_>) -> Result<Self, ReportError> {
        let target = report.target()?;
        let (tiles, per_ipu) = (target.tiles_per_replica(), target.tiles_per_ipu.max(1));
        let mut terms = Vec::new();
        for (term, _) in &tests.terms {
            let (spans, each, ipus) = match &term.test {
                Test::Ipu(spans) => (spans, per_ipu, Some(spans.clone())),
                Test::Tile(spans) => (spans, 1, None),
                _ => continue,
            };
            let range = |span: &Span| {
                let first = span.first.saturating_mul(each).min(tiles);
                let end = span.last.saturating_add(1).saturating_mul(each).min(tiles);
                TileRange::new(first, end.max(first))
            };
            let ranges = spans.iter().map(range).filter(|range| range.count() > 0).collect();
            let ranges: Vec<TileRange> = ranges;
            terms.push(Place::read(report, all, term.negated, (&ranges, ipus))?);
        }
        Ok(Self { all, terms })
    }

    fn hold(&self, item: &Item) -> bool {
        self.terms.iter().all(|place| self.lies(place, item) != place.negated)
    }

    fn lies(&self, place: &Place, item: &Item) -> bool {
        // Of what an IPU does, only compute sets and exchanges are known tile by tile.
        let on_ipu = |ipu| place.ipus.as_ref().is_some_and(|spans| holds(spans, ipu));
        match item.thing {
            Thing::Variable(id) | Thing::Tensor(id) => place.variables.contains(&id),
            Thing::Vertex(id) => place.vertices.contains(&id),
            Thing::Steps(id) | Thing::Program(id) => {
                place.programs.contains(&id) || item.ipu.is_some_and(on_ipu)
            }
            Thing::Operation(id) => {
                let programs = self.all.programs.get(&id).map_or(&[][..], Vec::as_slice);
                let on_tile = programs.iter().any(|program| place.programs.contains(program));
                on_tile || item.ipu.is_some_and(on_ipu)
            }
        }
    }
}

impl Place {
    fn read(
        report: &Report,
        all: &Catalogue,
        negated: bool,
        (tiles, ipus): (&[TileRange], Option<Vec<Span>>),
    ) -> Result<Self, ReportError> {
        let mut variables = HashSet::new();
        for range in tiles {
            let filter = VariableFilter {
                tiles: Some(*range),
                category: None,
                after: None,
                limit: usize::MAX,
            };
            variables.extend(report.variables(&filter)?.into_iter().map(|(id, _)| id));
        }
        let mut sets = HashSet::new();
        let mut vertices = HashSet::new();
        for (id, set) in report.compute_sets()? {
            if meets(&set.cycles, tiles) {
                sets.insert(id);
            }
            for group in set.vertices.iter().filter(|group| meets(&group.count, tiles)) {
                sets.insert(id);
                vertices.insert(group.vertex_type);
            }
        }
        let mut programs: HashSet<ProgramId> = HashSet::new();
        for (id, program) in report.programs()?.iter() {
            if program.compute_set.is_some_and(|set| sets.contains(&set)) {
                programs.insert(id);
            }
        }
        for exchange in report.exchanges()? {
            if meets(&exchange.tiles, tiles) {
                programs.insert(exchange.program);
            }
        }
        if let Some(spans) = &ipus {
            let ran = all.runs.runs.keys().filter(|(ipu, _)| holds(spans, *ipu));
            programs.extend(ran.map(|(_, program)| *program));
        }
        Ok(Self { negated, ipus, variables, programs, vertices })
    }
}

fn holds(spans: &[Span], number: u32) -> bool {
    spans.iter().any(|span| span.holds(number))
}

fn meets<T>(runs: &TileRuns<T>, tiles: &[TileRange]) -> bool {
    runs.iter()
        .any(|(run, _)| tiles.iter().any(|tiles| run.first < tiles.end && tiles.first < run.end))
}
