//! Preferences, remembered between starts: theme, recent reports, settings of views.

use crate::model::command::AppCommand;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use tilescope_analysis::trace::TraceLaneStyle;
use tilescope_report::remote::{RemoteAddress, RemoteAddressError};
use tilescope_report::units::{ByteUnits, NumberFormat};

/// Most recent reports that are remembered.
pub(crate) const MAX_RECENT: usize = 64;

/// Light, dark, or the system setting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThemeChoice {
    /// As the system says.
    #[default]
    System,
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

impl ThemeChoice {
    pub(crate) const ALL: [Self; 3] = [Self::System, Self::Light, Self::Dark];

    /// The choice that a click goes to.
    pub(crate) fn next(self) -> Self {
        match self {
            Self::System => Self::Light,
            Self::Light => Self::Dark,
            Self::Dark => Self::System,
        }
    }

    /// A word for people.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::System => "System",
            Self::Light => "Light",
            Self::Dark => "Dark",
        }
    }
}

/// Which colours stand for things.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PaletteChoice {
    /// As IPU profilers have always shown them.
    #[default]
    Classic,
    /// Told apart whatever colours somebody sees.
    ColourBlindSafe,
}

impl PaletteChoice {
    /// All choices, in the order they are offered.
    pub const ALL: [Self; 2] = [Self::Classic, Self::ColourBlindSafe];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::ColourBlindSafe => "colour-blind-safe",
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Classic => "Classic",
            Self::ColourBlindSafe => "Colour-blind safe",
        }
    }
}

/// What dragging the trace without a key does; with Shift it does the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceDragMode {
    /// Moves what is shown.
    #[default]
    Pans,
    /// Chooses a range to zoom to.
    Selects,
}

impl TraceDragMode {
    pub(crate) const ALL: [Self; 2] = [Self::Pans, Self::Selects];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Pans => "Pans",
            Self::Selects => "Selects a range",
        }
    }
}

/// Look and feel of all views.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AppearancePrefs {
    /// Units of bytes.
    pub units: ByteUnits,
    /// Which colours stand for things.
    pub palette: PaletteChoice,
    /// The effect of dragging the trace.
    pub drag: TraceDragMode,
    /// Size of text and everything else, in percent.
    pub text_percent: u16,
}

impl Default for AppearancePrefs {
    fn default() -> Self {
        Self {
            units: ByteUnits::default(),
            palette: PaletteChoice::default(),
            drag: TraceDragMode::default(),
            text_percent: 100,
        }
    }
}

impl AppearancePrefs {
    /// How numbers are written.
    pub(crate) fn numbers(self) -> NumberFormat {
        NumberFormat { byte_units: self.units }
    }
}

/// Least and most percent that text may have.
pub const TEXT_PERCENT: std::ops::RangeInclusive<u16> = 50..=300;

/// A report that was open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecentReport {
    /// As it was opened.
    pub path: PathBuf,
    /// When, in seconds since 1970.
    pub opened_unix_seconds: u64,
}

/// Choices of the execution trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TracePrefs {
    pub style: TraceLaneStyle,
    /// Show the parts of an operation as one.
    pub group_executions: bool,
    /// Show syncs that follow one another as one.
    pub group_syncs: bool,
    /// Shade bars by tile balance.
    pub tile_balance: bool,
    /// Far out, show lanes as shares of what they spend their time on.
    pub shares: bool,
    /// Show rows of runs, iterations and stages.
    pub marks: bool,
    /// Show where data goes between IPUs.
    pub arrows: bool,
    /// Show the lane of the critical path.
    pub path: bool,
    /// Show the lanes of all replicas, where they are alike.
    pub replicas: bool,
    /// Show what the links of each IPU carry below the bars.
    pub links: bool,
    /// Show what every tile does below the bars.
    pub tiles: bool,
    /// Height of that, in points.
    pub tiles_height: u16,
}

impl TracePrefs {
    /// The choices for another report: what was switched on to look closely at one report is off
    /// again.
    pub(crate) fn for_another_report(self) -> Self {
        Self { replicas: false, links: false, ..self }
    }
}

impl Default for TracePrefs {
    fn default() -> Self {
        Self {
            style: TraceLaneStyle::Flame,
            group_executions: true,
            group_syncs: true,
            tile_balance: true,
            shares: true,
            marks: true,
            arrows: true,
            path: true,
            replicas: false,
            links: false,
            tiles: false,
            tiles_height: 120,
        }
    }
}

/// Choices of the memory view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryPrefs {
    /// Count gaps between variables, as what a tile needs does.
    pub include_gaps: bool,
    /// Show the line of a tile's capacity; not chosen means: where tiles are nearly full.
    pub max_memory: Option<bool>,
    /// Show variables at their addresses instead of as a table.
    pub variable_map: bool,
}

impl Default for MemoryPrefs {
    fn default() -> Self {
        Self { include_gaps: true, max_memory: None, variable_map: false }
    }
}

/// Choices of the liveness view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LivenessPrefs {
    /// Show always-live memory below the rest.
    pub always_live: bool,
    /// Show the line of the memory there is; not chosen means: where it is nearly full.
    pub max_memory: Option<bool>,
}

impl Default for LivenessPrefs {
    fn default() -> Self {
        Self { always_live: true, max_memory: None }
    }
}

/// Choices of the operations view.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OperationPrefs {
    /// Keys of columns that are switched the other way than they are at first.
    pub switched: Vec<String>,
}

/// What colours of the operations graph mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationsGraphMetric {
    /// Forward, backward or update.
    #[default]
    Pass,
    /// Cycles in the run.
    Elapsed,
    /// Code over all tiles.
    Code,
    Flops,
    /// Bytes of variables.
    Memory,
}

/// Choices of the operations graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OperationsGraphPrefs {
    pub metric: OperationsGraphMetric,
    /// Show the backward pass.
    pub backward: bool,
    pub updates: bool,
    /// Let arrows say what they carry.
    pub edge_labels: bool,
}

impl Default for OperationsGraphPrefs {
    fn default() -> Self {
        Self {
            metric: OperationsGraphMetric::Pass,
            backward: true,
            updates: false,
            edge_labels: false,
        }
    }
}

/// A report on another machine, as it is typed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RemotePrefs {
    /// `user@host:port`, or a name of the user's `~/.ssh/config`.
    pub host: String,
    /// Where it is there.
    pub path: String,
}

impl RemotePrefs {
    /// The address that is meant.
    ///
    /// # Errors
    /// Host or path cannot be what is typed.
    pub fn address(&self) -> Result<RemoteAddress, RemoteAddressError> {
        let host = self.host.trim();
        let host = host.strip_prefix("ssh://").unwrap_or(host).trim_end_matches('/');
        let path = self.path.trim().replace('%', "%25");
        format!("ssh://{host}/{}", path.trim_start_matches('/')).parse()
    }
}

/// All preferences.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UserPreferences {
    pub theme: ThemeChoice,
    /// Side menu shows icons only.
    pub narrow_menu: bool,
    /// Reports that were open, newest first.
    pub recent: Vec<RecentReport>,
    /// Source and target of comparisons, newest first.
    pub recent_comparisons: Vec<(PathBuf, PathBuf)>,
    /// Links to the tabs of the window that was closed last, in their order.
    pub open_tabs: Vec<String>,
    /// Which of them was shown; none for the home screen.
    pub shown_tab: Option<usize>,
    /// Titles of summary blocks that are folded.
    pub folded_blocks: Vec<String>,
    /// Filter of the options table.
    pub option_filter: String,
    /// Choices of the execution trace.
    pub trace: TracePrefs,
    /// Choices of the memory view.
    pub memory: MemoryPrefs,
    /// Choices of the liveness view.
    pub liveness: LivenessPrefs,
    /// Choices of the operations view.
    pub operations: OperationPrefs,
    /// Choices of the operations graph.
    pub operations_graph: OperationsGraphPrefs,
    /// The report on another machine that was asked for last.
    pub remote: RemotePrefs,
    /// Units, colours, text size.
    pub look: AppearancePrefs,
    /// Keys of actions, by name, where they are not those of the table.
    pub keys: BTreeMap<String, Vec<String>>,
}

impl UserPreferences {
    /// Those of a first start; lists of what was open stay.
    pub(crate) fn reset(&mut self) {
        *self = Self {
            recent: std::mem::take(&mut self.recent),
            recent_comparisons: std::mem::take(&mut self.recent_comparisons),
            open_tabs: std::mem::take(&mut self.open_tabs),
            shown_tab: self.shown_tab.take(),
            remote: std::mem::take(&mut self.remote),
            ..Self::default()
        };
    }

    /// Puts a report on top of the list.
    pub fn remember(&mut self, path: &Path) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.forget(path);
        self.recent.insert(0, RecentReport { path: path.to_owned(), opened_unix_seconds: now });
        self.recent.truncate(MAX_RECENT);
    }

    /// Puts a comparison on top of the list.
    pub(crate) fn remember_comparison(&mut self, source: &Path, target: &Path) {
        self.forget_comparison(source, target);
        self.recent_comparisons.insert(0, (source.to_owned(), target.to_owned()));
        self.recent_comparisons.truncate(MAX_RECENT);
    }

    /// Takes a comparison off the list.
    pub(crate) fn forget_comparison(&mut self, source: &Path, target: &Path) {
        self.recent_comparisons.retain(|(a, b)| (a.as_path(), b.as_path()) != (source, target));
    }

    /// Takes a report off the list.
    pub(crate) fn forget(&mut self, path: &Path) {
        self.recent.retain(|recent| recent.path != path);
    }

    /// Changes what a command says; others say nothing about preferences.
    pub(crate) fn apply(&mut self, command: AppCommand) {
        match command {
            AppCommand::SetTracePrefs(prefs) => self.trace = prefs,
            AppCommand::SetMemoryPrefs(prefs) => self.memory = prefs,
            AppCommand::SetLivenessPrefs(prefs) => self.liveness = prefs,
            AppCommand::SetGraphPrefs(prefs) => self.operations_graph = prefs,
            AppCommand::SetOperationPrefs(prefs) => self.operations = prefs,
            AppCommand::SetOptionFilter(filter) => self.option_filter = filter,
            AppCommand::ToggleBlock(title) => self.toggle_block(title),
            AppCommand::ToggleMenu => self.narrow_menu ^= true,
            AppCommand::SetShortcuts(name, Some(keys)) => {
                self.keys.insert(name.to_owned(), keys);
            }
            AppCommand::SetShortcuts(name, None) => drop(self.keys.remove(name)),
            AppCommand::RemoveRecentReport(path) => self.forget(&path),
            AppCommand::RemoveRecentComparison(source, target) => {
                self.forget_comparison(&source, &target);
            }
            _ => {}
        }
    }

    fn toggle_block(&mut self, title: &str) {
        match self.folded_blocks.iter().position(|folded| folded == title) {
            Some(at) => drop(self.folded_blocks.remove(at)),
            None => self.folded_blocks.push(title.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_folded_and_unfolded() {
        let mut prefs = UserPreferences::default();
        prefs.apply(AppCommand::ToggleBlock("Notes"));
        assert_eq!(prefs.folded_blocks, ["Notes"]);
        prefs.apply(AppCommand::ToggleBlock("Notes"));
        assert_eq!(prefs, UserPreferences::default());
    }

    #[test]
    fn chosen_keys_can_be_given_up() {
        let mut prefs = UserPreferences::default();
        prefs.apply(AppCommand::SetShortcuts("find", Some(vec!["J".to_owned()])));
        assert_eq!(prefs.keys["find"], ["J"]);
        prefs.apply(AppCommand::SetShortcuts("find", None));
        assert!(prefs.keys.is_empty());
    }
}
