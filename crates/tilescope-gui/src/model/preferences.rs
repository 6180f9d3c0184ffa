//! Preferences kept between starts: theme, recent reports, settings of views.

use crate::model::command::AppCommand;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use tilescope_analysis::trace::TraceLaneStyle;
use tilescope_report::remote::{RemoteAddress, RemoteAddressError};
use tilescope_report::units::{ByteUnits, NumberFormat};

/// The largest number of remembered recent reports.
pub(crate) const MAX_RECENT: usize = 64;

/// Light, dark, or the system setting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThemeChoice {
    /// The setting of the system.
    #[default]
    System,
    /// Dark text on a light background.
    Light,
    /// Light text on a dark background.
    Dark,
}

impl ThemeChoice {
    pub(crate) const ALL: [Self; 3] = [Self::System, Self::Light, Self::Dark];

    /// The choice that follows on a click.
    pub(crate) fn next(self) -> Self {
        match self {
            Self::System => Self::Light,
            Self::Light => Self::Dark,
            Self::Dark => Self::System,
        }
    }

    /// The title for the user.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::System => "System",
            Self::Light => "Light",
            Self::Dark => "Dark",
        }
    }
}

/// The palette of colours with a meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PaletteChoice {
    /// The usual colours of IPU profilers.
    #[default]
    Classic,
    /// Colours that people with any colour vision can distinguish.
    ColourBlindSafe,
}

impl PaletteChoice {
    /// All choices, in the order of menus.
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

/// The effect of dragging the trace without a key. Shift selects the other effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceDragMode {
    /// Moves the visible range.
    #[default]
    Pans,
    /// Selects a range to zoom to.
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

/// The appearance of all views.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AppearancePrefs {
    /// The units of bytes.
    pub units: ByteUnits,
    /// The palette of colours with a meaning.
    pub palette: PaletteChoice,
    /// The effect of dragging the trace.
    pub drag: TraceDragMode,
    /// The size of text and of everything else, in percent.
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
    /// The format of numbers.
    pub(crate) fn numbers(self) -> NumberFormat {
        NumberFormat { byte_units: self.units }
    }
}

/// The smallest and largest text size in percent.
pub const TEXT_PERCENT: std::ops::RangeInclusive<u16> = 50..=300;

/// A recently opened report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecentReport {
    /// The path under which it was opened.
    pub path: PathBuf,
    /// The time at which it was opened, in seconds since 1970.
    pub opened_unix_seconds: u64,
}

/// The preferences of the execution trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TracePrefs {
    pub style: TraceLaneStyle,
    /// Shows the parts of an operation as one bar.
    pub group_executions: bool,
    /// Shows consecutive syncs as one bar.
    pub group_syncs: bool,
    /// Shades bars by tile balance.
    pub tile_balance: bool,
    /// Shows lanes as shares of time per activity when zoomed far out.
    pub shares: bool,
    /// Shows rows for host calls, iterations and stages.
    pub marks: bool,
    /// Shows transfers between IPUs as arrows.
    pub arrows: bool,
    /// Shows the lane of the critical path.
    pub path: bool,
    /// Shows the lanes of all replicas if they are alike.
    pub replicas: bool,
    /// Shows the load of each IPU's links below the bars.
    pub links: bool,
    /// Shows the activity of every tile below the bars.
    pub tiles: bool,
    /// The height of the tile area, in points.
    pub tiles_height: u16,
    /// The ruler counts time instead of cycles.
    pub ruler_in_time: bool,
}

impl TracePrefs {
    /// The choices for another report: options that were switched on to examine one report are off.
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
            ruler_in_time: false,
        }
    }
}

/// The preferences of the memory view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryPrefs {
    /// Counts gaps between variables as memory that a tile needs.
    pub include_gaps: bool,
    /// Shows the line of a tile's capacity. `None` shows it only if tiles are nearly full.
    pub max_memory: Option<bool>,
    /// Shows variables at their addresses instead of as a table.
    pub variable_map: bool,
}

impl Default for MemoryPrefs {
    fn default() -> Self {
        Self { include_gaps: true, max_memory: None, variable_map: false }
    }
}

/// The preferences of the liveness view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LivenessPrefs {
    /// Shows always-live memory below the rest.
    pub always_live: bool,
    /// Shows the line of the available memory. `None` shows it only if memory is nearly full.
    pub max_memory: Option<bool>,
}

impl Default for LivenessPrefs {
    fn default() -> Self {
        Self { always_live: true, max_memory: None }
    }
}

/// The preferences of the operations view.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OperationPrefs {
    /// The keys of columns whose visibility differs from the default.
    pub switched: Vec<String>,
}

/// The metric that the colours of the operations graph show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationsGraphMetric {
    /// The pass: forward, backward or update.
    #[default]
    Pass,
    /// The cycles in the run.
    Elapsed,
    /// The bytes of code over all tiles.
    Code,
    Flops,
    /// The bytes of variables.
    Memory,
}

/// The preferences of the operations graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OperationsGraphPrefs {
    pub metric: OperationsGraphMetric,
    /// Shows the backward pass.
    pub backward: bool,
    pub updates: bool,
    /// Shows the data of each arrow.
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

/// The address of a report on another machine, as typed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RemotePrefs {
    /// `user@host:port`, or a name of the user's `~/.ssh/config`.
    pub host: String,
    /// The path on that machine.
    pub path: String,
}

impl RemotePrefs {
    /// The parsed address.
    ///
    /// # Errors
    /// Returns an error if the host or the path is invalid.
    pub fn address(&self) -> Result<RemoteAddress, RemoteAddressError> {
        let host = self.host.trim();
        let host = host.strip_prefix("ssh://").unwrap_or(host).trim_end_matches('/');
        let path = self.path.trim().replace('%', "%25");
        format!("ssh://{host}/{}", path.trim_start_matches('/')).parse()
    }
}

/// All preferences of the user.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UserPreferences {
    pub theme: ThemeChoice,
    /// True if the side menu shows only icons.
    pub narrow_menu: bool,
    /// The reports that were open, newest first.
    pub recent: Vec<RecentReport>,
    /// The source and target of recent comparisons, newest first.
    pub recent_comparisons: Vec<(PathBuf, PathBuf)>,
    /// The links to the tabs of the last closed window, in order.
    pub open_tabs: Vec<String>,
    /// The index of the tab that was visible; `None` for the home screen.
    pub shown_tab: Option<usize>,
    /// The titles of folded summary blocks.
    pub folded_blocks: Vec<String>,
    /// The filter of the options table.
    pub option_filter: String,
    /// The preferences of the execution trace.
    pub trace: TracePrefs,
    /// The preferences of the memory view.
    pub memory: MemoryPrefs,
    /// The preferences of the liveness view.
    pub liveness: LivenessPrefs,
    /// The preferences of the operations view.
    pub operations: OperationPrefs,
    /// The preferences of the operations graph.
    pub operations_graph: OperationsGraphPrefs,
    /// The last opened report on another machine.
    pub remote: RemotePrefs,
    /// Units, colours and text size.
    pub look: AppearancePrefs,
    /// The keys of actions, by name, that differ from the defaults.
    pub keys: BTreeMap<String, Vec<String>>,
}

impl UserPreferences {
    /// Restores the defaults; the lists of opened reports stay.
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

    /// Moves a report to the top of the list.
    pub fn remember(&mut self, path: &Path) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.forget(path);
        self.recent.insert(0, RecentReport { path: path.to_owned(), opened_unix_seconds: now });
        self.recent.truncate(MAX_RECENT);
    }

    /// Moves a comparison to the top of the list.
    pub(crate) fn remember_comparison(&mut self, source: &Path, target: &Path) {
        self.forget_comparison(source, target);
        self.recent_comparisons.insert(0, (source.to_owned(), target.to_owned()));
        self.recent_comparisons.truncate(MAX_RECENT);
    }

    /// Removes a comparison from the list.
    pub(crate) fn forget_comparison(&mut self, source: &Path, target: &Path) {
        self.recent_comparisons.retain(|(a, b)| (a.as_path(), b.as_path()) != (source, target));
    }

    /// Removes a report from the list.
    pub(crate) fn forget(&mut self, path: &Path) {
        self.recent.retain(|recent| recent.path != path);
    }

    /// Applies a command that changes preferences; others have no effect.
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
    fn blocks_fold_and_unfold() {
        let mut prefs = UserPreferences::default();
        prefs.apply(AppCommand::ToggleBlock("Notes"));
        assert_eq!(prefs.folded_blocks, ["Notes"]);
        prefs.apply(AppCommand::ToggleBlock("Notes"));
        assert_eq!(prefs, UserPreferences::default());
    }

    #[test]
    fn custom_keys_can_be_reset() {
        let mut prefs = UserPreferences::default();
        prefs.apply(AppCommand::SetShortcuts("find", Some(vec!["J".to_owned()])));
        assert_eq!(prefs.keys["find"], ["J"]);
        prefs.apply(AppCommand::SetShortcuts("find", None));
        assert!(prefs.keys.is_empty());
    }
}
