//! Matching of a query against all named entities.

use super::catalogue::{CatalogueItem, MAX_VARIABLES, SearchCatalogue, SearchEntity};
use super::parse::regex;
use super::query::{
    NumberRange, QueryAmount, QueryCondition, QueryTerm, SearchList, SearchQuery, TextPattern,
};
use crate::comparison::LimitComparison;
use crate::distribution::{ValueDistribution, is_short};
use crate::trace::ProgramRunTotals;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use tilescope_report::trace::{EqualSteps, LengthGroup, ProgramStepTotals, StepVisitor, Trace};
use tilescope_report::units::{
    Bytes, Cycles, IpuId, ProgramId, TileId, TileRange, TileRuns, VariableId, VertexTypeId, grouped,
};
use tilescope_report::{ProgramKind, Report, ReportError, VariableFilter};

/// Totals of one list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct SearchTotals {
    pub things: u64,
    /// Sum of their counts.
    pub count: u64,
    /// Sum of their cycles; entities without cycles count as 0.
    pub cycles: Cycles,
    /// Sum of their bytes; entities without bytes count as 0.
    pub bytes: Bytes,
}

/// The results of a query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchResults {
    /// The entities by list, the most expensive first. Steps count if they match.
    pub hits: Vec<CatalogueItem>,
    /// Sums by list; lists without a hit are left out.
    pub totals: BTreeMap<SearchList, SearchTotals>,
    /// True if there are variables that were not searched.
    pub more_variables: bool,
}

impl SearchResults {
    /// The sentence that states the limit on searched variables.
    pub fn words_of_more_variables(&self) -> String {
        let most = grouped(MAX_VARIABLES as u64);
        format!("Only the first {most} variables were searched; more may match.")
    }
}

/// Finds all matches of a query.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn find(
    report: &Report,
    all: &SearchCatalogue,
    query: &SearchQuery,
) -> Result<SearchResults, ReportError> {
    let tests = QueryMatcher::new(query);
    let places = LocationFilters::new(report, all, &tests)?;
    let mut hits: Vec<CatalogueItem> = Vec::new();
    let mut steps: HashMap<StepsOfProgram, CatalogueItem> = HashMap::new();
    for item in all.items.iter().filter(|item| tests.names(item) && places.all_match(item)) {
        match item.thing {
            SearchEntity::Steps(program, kind) => drop(steps.insert((program, kind), item.clone())),
            _ if tests.amounts(item, &QueryAmount::ALL) => hits.push(item.clone()),
            _ => {}
        }
    }
    for (own, sum) in step_sums(report, all, &tests, &steps)? {
        let Some(item) = steps.remove(&own) else { continue };
        let cycles = Some(sum.cycles);
        let bytes = Some(sum.bytes);
        let item = CatalogueItem { count: sum.steps, cycles, bytes, ..item };
        if tests.amounts(&item, &[QueryAmount::Count]) {
            hits.push(item);
        }
    }
    hits.sort_by_cached_key(|item| {
        let list = SearchList::ALL.iter().position(|of| *of == item.thing.source());
        (list, Reverse((item.cycles, item.bytes, item.count)), item.thing)
    });
    let mut totals: BTreeMap<SearchList, SearchTotals> = BTreeMap::new();
    for hit in &hits {
        let sum = totals.entry(hit.thing.source()).or_default();
        sum.things += 1;
        sum.count += hit.count;
        sum.cycles = sum.cycles.saturating_add(hit.cycles.unwrap_or(Cycles::ZERO));
        sum.bytes = sum.bytes.saturating_add(hit.bytes.unwrap_or(Bytes::ZERO));
    }
    Ok(SearchResults { hits, totals, more_variables: all.more_variables })
}

/// The figures of one list of results, per single step or per entity, as the input of statistics.
/// Steps are those of `found`, on the IPUs and within the limits of `query`.
///
/// # Errors
/// A trace that cannot be read.
pub fn values(
    report: &Report,
    query: &SearchQuery,
    found: &SearchResults,
    source: SearchList,
    amount: QueryAmount,
) -> Result<ValueDistribution, ReportError> {
    let hits = found.hits.iter().filter(|hit| hit.thing.source() == source);
    let mut values = ValueDistribution::default();
    if source != SearchList::Steps || amount == QueryAmount::Count {
        hits.filter_map(|hit| figure(hit, amount)).for_each(|value| values.add(value));
        return Ok(values);
    }
    let tests = QueryMatcher::new(query);
    let wanted: HashSet<StepsOfProgram> = hits.filter_map(steps_of).collect();
    let Some(trace) = report.trace()? else { return Ok(values) };
    let mut collector = StepValueCollector {
        tests: &tests,
        wanted: &wanted,
        amount,
        // Short traces are read step by step, so that every figure is exact.
        single: is_short(&trace),
        values,
    };
    visit(&trace, &tests, &mut collector)?;
    Ok(collector.values)
}

/// Steps of a program of one kind.
type StepsOfProgram = (ProgramId, ProgramKind);

fn steps_of(item: &CatalogueItem) -> Option<StepsOfProgram> {
    match item.thing {
        SearchEntity::Steps(program, kind) => Some((program, kind)),
        _ => None,
    }
}

/// Passes the steps on the IPUs that a query allows to a visitor.
fn visit(
    trace: &Trace,
    tests: &QueryMatcher<'_>,
    visitor: &mut dyn StepVisitor,
) -> Result<(), ReportError> {
    let lanes = (0..trace.lanes().len()).filter_map(|index| trace.lane(index));
    lanes
        .filter(|lane| tests.on_ipu(lane.info().ipu))
        .try_for_each(|lane| lane.visit_steps(visitor))
}

/// Collects the figures of matching steps.
struct StepValueCollector<'a> {
    tests: &'a QueryMatcher<'a>,
    wanted: &'a HashSet<StepsOfProgram>,
    amount: QueryAmount,
    /// True if steps are read one by one only.
    single: bool,
    values: ValueDistribution,
}

impl StepVisitor for StepValueCollector<'_> {
    fn take_totals(&mut self, totals: &ProgramStepTotals) -> bool {
        let wanted = totals.program.is_some_and(|id| self.wanted.contains(&(id, totals.kind())));
        match self.tests.all_steps(totals) {
            _ if !wanted => true,
            Some(false) => true,
            Some(true) if self.single => false,
            Some(true) if self.amount == QueryAmount::Cycles => {
                self.values.add_lengths(totals);
                true
            }
            Some(true) if totals.least_bytes_moved == totals.most_bytes_moved => {
                self.values.add_times(totals.least_bytes_moved.0, totals.steps);
                true
            }
            _ => false,
        }
    }

    fn take_lengths(&mut self, totals: &ProgramStepTotals, groups: &[LengthGroup]) -> bool {
        if self.single || self.tests.all_steps(totals) == Some(true) {
            return false;
        }
        let Some(matching) = self.tests.matching_lengths(totals, groups) else { return false };
        let bytes = totals.least_bytes_moved;
        match self.amount {
            QueryAmount::Bytes if bytes == totals.most_bytes_moved => {
                for group in matching {
                    self.values.add_times(bytes.0, group.steps);
                }
                true
            }
            // The squares of lengths are known if all steps of a group are equal.
            QueryAmount::Cycles if matching.iter().all(|group| group.shortest == group.longest) => {
                for group in matching {
                    self.values.add_times(group.shortest.0, group.steps);
                }
                true
            }
            _ => false,
        }
    }

    fn take_steps(&mut self, steps: &EqualSteps) {
        let Some(program) = steps.program else { return };
        if self.tests.steps(steps) && self.wanted.contains(&(program, steps.kind())) {
            let value = match self.amount {
                QueryAmount::Bytes => steps.bytes_moved.0,
                QueryAmount::Cycles | QueryAmount::Count => steps.cycles.0,
            };
            self.values.add_times(value, steps.times);
        }
    }
}

/// Sums over the matching steps, by program and kind.
fn step_sums(
    report: &Report,
    all: &SearchCatalogue,
    tests: &QueryMatcher<'_>,
    steps: &HashMap<StepsOfProgram, CatalogueItem>,
) -> Result<BTreeMap<StepsOfProgram, ProgramRunTotals>, ReportError> {
    let mut sums: BTreeMap<StepsOfProgram, ProgramRunTotals> = BTreeMap::new();
    if !tests.of_steps() {
        for ((ipu, program, kind), totals) in &all.runs.steps {
            if steps.contains_key(&(*program, *kind)) && tests.on_ipu(*ipu) {
                sums.entry((*program, *kind)).or_default().add(totals);
            }
        }
        return Ok(sums);
    }
    let Some(trace) = report.trace()? else { return Ok(sums) };
    let wanted = steps.keys().map(|own| (*own, ProgramRunTotals::default())).collect();
    let mut collector = StepSumCollector { tests, sums: wanted };
    visit(&trace, tests, &mut collector)?;
    let found = collector.sums.into_iter().filter(|(_, sum)| sum.steps > 0);
    sums.extend(found);
    Ok(sums)
}

/// Sums up matching steps.
struct StepSumCollector<'a> {
    tests: &'a QueryMatcher<'a>,
    /// Sums of the requested programs and kinds.
    sums: foldhash::HashMap<StepsOfProgram, ProgramRunTotals>,
}

impl StepVisitor for StepSumCollector<'_> {
    fn take_totals(&mut self, totals: &ProgramStepTotals) -> bool {
        let own = totals.program.map(|program| (program, totals.kind()));
        let Some(sum) = own.and_then(|own| self.sums.get_mut(&own)) else { return true };
        let all = self.tests.all_steps(totals);
        if all == Some(true) {
            sum.add_totals(totals);
        }
        all.is_some()
    }

    fn take_lengths(&mut self, totals: &ProgramStepTotals, groups: &[LengthGroup]) -> bool {
        let own = totals.program.map(|program| (program, totals.kind()));
        let Some(sum) = own.and_then(|own| self.sums.get_mut(&own)) else { return true };
        let Some(matching) = self.tests.matching_lengths(totals, groups) else { return false };
        for group in matching {
            sum.add(&ProgramRunTotals {
                steps: group.steps,
                cycles: group.cycles,
                bytes: group.bytes_moved,
            });
        }
        true
    }

    fn take_steps(&mut self, steps: &EqualSteps) {
        // This test is cheaper than the lookup of the program.
        if !self.tests.steps(steps) {
            return;
        }
        let own = steps.program.map(|program| (program, steps.kind()));
        if let Some(sum) = own.and_then(|own| self.sums.get_mut(&own)) {
            sum.add_steps(steps);
        }
    }
}

/// A compiled pattern.
enum PatternMatcher {
    Contains(String),
    Equals(String),
    Regex(regex::Regex),
}

impl PatternMatcher {
    fn new(pattern: &TextPattern) -> Self {
        match pattern {
            TextPattern::Contains(text) => Self::Contains(text.to_lowercase()),
            TextPattern::Equals(text) => Self::Equals(text.clone()),
            // The parser has compiled it before; if it does not compile, it is matched as plain
            // text.
            TextPattern::Regex(text) => {
                regex(text).map_or_else(|_| Self::Equals(text.clone()), Self::Regex)
            }
        }
    }

    fn matches(&self, text: &str) -> bool {
        match self {
            Self::Contains(wanted) if text.is_ascii() => holds_ascii(text, wanted),
            Self::Contains(wanted) => text.to_lowercase().contains(wanted),
            Self::Equals(wanted) => text == wanted,
            Self::Regex(regex) => regex.is_match(text),
        }
    }
}

/// True if ASCII `text` contains `wanted`, which is in lower case. Equivalent to a comparison in
/// lower case, without a copy of every name.
fn holds_ascii(text: &str, wanted: &str) -> bool {
    let text = text.as_bytes();
    let wanted = wanted.as_bytes();
    wanted.is_empty() || text.windows(wanted.len()).any(|part| part.eq_ignore_ascii_case(wanted))
}

/// The terms of a query, by kind of condition.
struct QueryMatcher<'q> {
    terms: Vec<(&'q QueryTerm, Option<PatternMatcher>)>,
}

impl<'q> QueryMatcher<'q> {
    fn new(query: &'q SearchQuery) -> Self {
        let mut terms = Vec::new();
        for term in &query.terms {
            let matcher = match &term.test {
                QueryCondition::Name(pattern) | QueryCondition::Type(pattern) => {
                    Some(PatternMatcher::new(pattern))
                }
                _ => None,
            };
            terms.push((term, matcher));
        }
        Self { terms }
    }

    /// True if the name, kind and list of an entity match.
    fn names(&self, item: &CatalogueItem) -> bool {
        self.terms.iter().all(|(term, matcher)| {
            let matches = |text| matcher.as_ref().is_none_or(|matcher| matcher.matches(text));
            let holds = match &term.test {
                QueryCondition::Name(_) => matches(&item.name),
                QueryCondition::Type(_) => matches(&item.kind),
                QueryCondition::In(source) => *source == item.thing.source(),
                QueryCondition::Ipu(_) | QueryCondition::Tile(_) | QueryCondition::Amount(..) => {
                    return true;
                }
            };
            holds != term.negated
        })
    }

    /// True if the figures of an entity match the conditions on `which` amounts; missing figures do
    /// not match.
    fn amounts(&self, item: &CatalogueItem, which: &[QueryAmount]) -> bool {
        self.conditions().filter(|(_, amount, ..)| which.contains(amount)).all(
            |(negated, amount, comparison, limit)| {
                figure(item, amount)
                    .is_some_and(|value| comparison.holds_whole(value, limit) != negated)
            },
        )
    }

    /// True if there are conditions on single steps.
    fn of_steps(&self) -> bool {
        self.conditions().any(|(_, amount, ..)| amount != QueryAmount::Count)
    }

    /// The groups of these totals that match; `None` if only some steps of a group may.
    fn matching_lengths<'g>(
        &self,
        totals: &ProgramStepTotals,
        groups: &'g [LengthGroup],
    ) -> Option<Vec<&'g LengthGroup>> {
        let mut matching = Vec::new();
        for group in groups {
            if self.all_of_lengths(totals, (group.shortest.0, group.longest.0))? {
                matching.push(group);
            }
        }
        Some(matching)
    }

    /// True if the figures of each of equal steps match.
    fn steps(&self, steps: &EqualSteps) -> bool {
        self.conditions().all(|(negated, amount, comparison, limit)| {
            let value = match amount {
                QueryAmount::Cycles => steps.cycles.0,
                QueryAmount::Bytes => steps.bytes_moved.0,
                QueryAmount::Count => return true,
            };
            comparison.holds_whole(value, limit) != negated
        })
    }

    /// The result for all steps of these totals: `Some(true)` if all match, `Some(false)` if none
    /// does, `None` if some may.
    fn all_steps(&self, totals: &ProgramStepTotals) -> Option<bool> {
        let lengths = totals.lengths.shortest().zip(totals.lengths.longest())?;
        self.all_of_lengths(totals, lengths)
    }

    /// The same for the steps of these totals whose lengths are in a range, both ends included.
    fn all_of_lengths(&self, totals: &ProgramStepTotals, lengths: (u64, u64)) -> Option<bool> {
        let mut all = Some(true);
        for (negated, amount, comparison, limit) in self.conditions() {
            let ends = match amount {
                QueryAmount::Cycles => lengths,
                QueryAmount::Bytes => (totals.least_bytes_moved.0, totals.most_bytes_moved.0),
                QueryAmount::Count => continue,
            };
            match comparison.holds_between(ends, limit).map(|holds| holds != negated) {
                Some(true) => {}
                Some(false) => return Some(false),
                None => all = None,
            }
        }
        all
    }

    fn on_ipu(&self, ipu: IpuId) -> bool {
        self.terms.iter().all(|(term, _)| match &term.test {
            QueryCondition::Ipu(spans) => holds(spans, ipu.0) != term.negated,
            _ => true,
        })
    }

    fn conditions(&self) -> impl Iterator<Item = (bool, QueryAmount, LimitComparison, u64)> {
        self.terms.iter().filter_map(|(term, _)| match term.test {
            QueryCondition::Amount(amount, comparison, value) => {
                Some((term.negated, amount, comparison, value))
            }
            _ => None,
        })
    }
}

fn figure(item: &CatalogueItem, amount: QueryAmount) -> Option<u64> {
    match amount {
        QueryAmount::Cycles => item.cycles.map(|cycles| cycles.0),
        QueryAmount::Bytes => item.bytes.map(|bytes| bytes.0),
        QueryAmount::Count => Some(item.count),
    }
}

/// A term on locations, and the entities there.
struct LocationFilter {
    negated: bool,
    /// IPUs of a term on IPUs.
    ipus: Option<Vec<NumberRange>>,
    variables: HashSet<VariableId>,
    programs: HashSet<ProgramId>,
    vertices: HashSet<VertexTypeId>,
}

/// The tiles that remain after terms on IPUs and tiles.
struct LocationFilters<'a> {
    all: &'a SearchCatalogue,
    terms: Vec<LocationFilter>,
}

impl<'a> LocationFilters<'a> {
    fn new(
        report: &Report,
        all: &'a SearchCatalogue,
        tests: &QueryMatcher<'_>,
    ) -> Result<Self, ReportError> {
        let target = report.target()?;
        let tiles = target.tiles_per_replica();
        let per_ipu = target.tiles_per_ipu.max(1);
        let mut terms = Vec::new();
        for (term, _) in &tests.terms {
            let (spans, each, ipus) = match &term.test {
                QueryCondition::Ipu(spans) => (spans, per_ipu, Some(spans.clone())),
                QueryCondition::Tile(spans) => (spans, 1, None),
                _ => continue,
            };
            let mut ranges = Vec::new();
            for span in spans {
                let first = span.first.saturating_mul(each).min(tiles);
                let end = span.last.saturating_add(1).saturating_mul(each).min(tiles);
                if first < end {
                    ranges.push(TileRange::new(TileId(first), TileId(end)));
                }
            }
            terms.push(LocationFilter::read(report, all, term.negated, (&ranges, ipus))?);
        }
        Ok(Self { all, terms })
    }

    fn all_match(&self, item: &CatalogueItem) -> bool {
        self.terms.iter().all(|place| self.is_at(place, item) != place.negated)
    }

    fn is_at(&self, place: &LocationFilter, item: &CatalogueItem) -> bool {
        // Of the work of an IPU, only compute sets and exchanges are known tile by tile.
        let on_ipu = match (&place.ipus, item.ipu) {
            (Some(spans), Some(ipu)) => holds(spans, ipu.0),
            _ => false,
        };
        match item.thing {
            SearchEntity::Variable(id) | SearchEntity::Tensor(id) => place.variables.contains(&id),
            SearchEntity::VertexType(id) => place.vertices.contains(&id),
            SearchEntity::Steps(id, _) | SearchEntity::Program(id) => {
                place.programs.contains(&id) || on_ipu
            }
            SearchEntity::Operation(id) => {
                let programs = self.all.programs.get(&id).map_or(&[][..], Vec::as_slice);
                let on_tile = programs.iter().any(|program| place.programs.contains(program));
                on_tile || on_ipu
            }
        }
    }
}

impl LocationFilter {
    fn read(
        report: &Report,
        all: &SearchCatalogue,
        negated: bool,
        (tiles, ipus): (&[TileRange], Option<Vec<NumberRange>>),
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
        for (id, program) in report.executed_program_nodes()?.iter() {
            if program.compute_set.is_some_and(|set| sets.contains(&set)) {
                programs.insert(id);
            }
        }
        for exchange in report.exchanges()? {
            if meets(&exchange.tiles, tiles) {
                programs.insert(exchange.program);
            }
        }
        let uses = report.executed_program_nodes()?;
        let uses = uses.further_uses().filter(|(_, body)| programs.contains(body));
        let uses: Vec<ProgramId> = uses.map(|(id, _)| id).collect();
        programs.extend(uses);
        if let Some(spans) = &ipus {
            let ran = all.runs.steps.keys().filter(|(ipu, ..)| holds(spans, ipu.0));
            programs.extend(ran.map(|(_, program, _)| *program));
        }
        Ok(Self { negated, ipus, variables, programs, vertices })
    }
}

fn holds(spans: &[NumberRange], number: u32) -> bool {
    spans.iter().any(|span| span.holds(number))
}

fn meets<T>(runs: &TileRuns<T>, tiles: &[TileRange]) -> bool {
    runs.iter()
        .any(|(run, _)| tiles.iter().any(|tiles| run.first < tiles.end && tiles.first < run.end))
}
