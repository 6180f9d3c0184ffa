//! What is remembered between two starts: theme, recent reports, choices of views.
//!
//! One JSON file below the user's configuration directory. Nothing here may fail the app: garbage
//! means defaults, a directory that cannot be written means nothing is remembered, and both are
//! said once.

use crate::analysis::save::write_whole;
use crate::analysis::trace::Style;
use crate::units::{ByteUnits, set_byte_units};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Most recent reports that are remembered.
const MAX_RECENT: usize = 64;

/// Light, dark, or as the system says.
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
    /// Every choice.
    pub const ALL: [Self; 3] = [Self::System, Self::Light, Self::Dark];

    /// The choice that a click goes to.
    pub fn next(self) -> Self {
        match self {
            Self::System => Self::Light,
            Self::Light => Self::Dark,
            Self::Dark => Self::System,
        }
    }

    /// A word for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::System => "System",
            Self::Light => "Light",
            Self::Dark => "Dark",
        }
    }

    /// What egui calls it.
    pub fn preference(self) -> egui::ThemePreference {
        match self {
            Self::System => egui::ThemePreference::System,
            Self::Light => egui::ThemePreference::Light,
            Self::Dark => egui::ThemePreference::Dark,
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
    /// Every choice.
    pub const ALL: [Self; 2] = [Self::Classic, Self::ColourBlindSafe];

    /// Words for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Classic => "Classic",
            Self::ColourBlindSafe => "Colour-blind safe",
        }
    }
}

/// What dragging the trace without a key does; with Shift it does the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BareDrag {
    /// Moves what is shown.
    #[default]
    Pans,
    /// Chooses a range to zoom to.
    Selects,
}

impl BareDrag {
    /// Every choice.
    pub const ALL: [Self; 2] = [Self::Pans, Self::Selects];

    /// Words for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Pans => "Pans",
            Self::Selects => "Selects a range",
        }
    }
}

/// How everything looks and feels, in every view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Look {
    /// How numbers of bytes are written.
    pub units: ByteUnits,
    /// Which colours stand for things.
    pub palette: PaletteChoice,
    /// What dragging the trace does.
    pub drag: BareDrag,
    /// Size of text and everything else, in percent.
    pub text_percent: u16,
}

impl Default for Look {
    fn default() -> Self {
        Self {
            units: ByteUnits::default(),
            palette: PaletteChoice::default(),
            drag: BareDrag::default(),
            text_percent: 100,
        }
    }
}

impl Look {
    /// Makes it so, for everything that is painted from now on.
    pub fn apply(self, context: &egui::Context) {
        set_byte_units(self.units);
        super::theme::choose(self.palette);
        super::theme::install_styles(context);
        context.set_zoom_factor(f32::from(self.text_percent.clamp(50, 300)) / 100.0);
    }
}

/// A report that was open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recent {
    /// As it was opened.
    pub path: PathBuf,
    /// When, in seconds since 1970.
    pub opened_unix_seconds: u64,
}

/// Choices of the execution trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TracePrefs {
    /// Flame or flat.
    pub style: Style,
    /// Show the parts of an operation as one.
    pub group_executions: bool,
    /// Show syncs that follow one another as one.
    pub group_syncs: bool,
    /// Shade bars by tile balance.
    pub tile_balance: bool,
    /// Show rows of runs, iterations and stages.
    pub marks: bool,
    /// Show where data goes between IPUs.
    pub arrows: bool,
    /// Show what every tile does below the bars.
    pub tiles: bool,
    /// Height of that, in points.
    pub tiles_height: u16,
}

impl Default for TracePrefs {
    fn default() -> Self {
        Self {
            style: Style::Flame,
            group_executions: true,
            group_syncs: true,
            tile_balance: true,
            marks: true,
            arrows: true,
            tiles: false,
            tiles_height: 120,
        }
    }
}

/// Choices of the memory view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryPrefs {
    /// Count gaps between variables.
    pub include_gaps: bool,
    /// Show the line of a tile's capacity; not chosen means: where tiles are nearly full.
    pub max_memory: Option<bool>,
    /// Show variables at their addresses instead of as a table.
    pub variable_map: bool,
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
pub enum GraphMetric {
    /// Forward, backward or update.
    #[default]
    Pass,
    /// Cycles in the run.
    Elapsed,
    /// Code over all tiles.
    Code,
    /// Floating point operations.
    Flops,
    /// Bytes of variables.
    Memory,
}

/// Choices of the operations graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GraphPrefs {
    /// What colours mean.
    pub metric: GraphMetric,
    /// Show the backward pass.
    pub backward: bool,
    /// Show weight updates.
    pub updates: bool,
    /// Let arrows say what they carry.
    pub edge_labels: bool,
}

impl Default for GraphPrefs {
    fn default() -> Self {
        Self { metric: GraphMetric::Pass, backward: true, updates: false, edge_labels: false }
    }
}

/// Everything that is remembered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Prefs {
    /// Colours.
    pub theme: ThemeChoice,
    /// Side menu shows icons only.
    pub narrow_menu: bool,
    /// Reports that were open, newest first.
    pub recent: Vec<Recent>,
    /// Source and target of comparisons, newest first.
    pub recent_comparisons: Vec<(PathBuf, PathBuf)>,
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
    pub operations_graph: GraphPrefs,
    /// Units, colours, text size.
    pub look: Look,
    /// Keys of actions, by name, where they are not those of the table.
    pub keys: BTreeMap<String, Vec<String>>,
}

impl Prefs {
    /// Those of a first start; lists of what was open stay.
    pub fn reset(&mut self) {
        *self = Self {
            recent: std::mem::take(&mut self.recent),
            recent_comparisons: std::mem::take(&mut self.recent_comparisons),
            ..Self::default()
        };
    }

    /// Puts a report on top of the list.
    pub fn remember(&mut self, path: &Path) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.forget(path);
        self.recent.insert(0, Recent { path: path.to_owned(), opened_unix_seconds: now });
        self.recent.truncate(MAX_RECENT);
    }

    /// Puts a comparison on top of the list.
    pub fn remember_comparison(&mut self, source: &Path, target: &Path) {
        self.forget_comparison(source, target);
        self.recent_comparisons.insert(0, (source.to_owned(), target.to_owned()));
        self.recent_comparisons.truncate(MAX_RECENT);
    }

    /// Takes a comparison off the list.
    pub fn forget_comparison(&mut self, source: &Path, target: &Path) {
        self.recent_comparisons.retain(|(a, b)| (a.as_path(), b.as_path()) != (source, target));
    }

    /// Takes a report off the list.
    pub fn forget(&mut self, path: &Path) {
        self.recent.retain(|recent| recent.path != path);
    }
}

/// The file that preferences live in, and what was last written to it.
pub struct Store {
    path: Option<PathBuf>,
    written: Prefs,
}

impl Store {
    /// Preferences that are kept nowhere, for pictures and tests.
    pub fn nowhere() -> (Self, Prefs) {
        (Self { path: None, written: Prefs::default() }, Prefs::default())
    }

    /// The user's file, what it says, and a message if it could not be understood.
    pub fn open() -> (Self, Prefs, Option<String>) {
        match directory() {
            Some(directory) => Self::open_file(directory.join("preferences.json")),
            None => {
                let (store, prefs) = Self::nowhere();
                (store, prefs, None)
            }
        }
    }

    fn open_file(path: PathBuf) -> (Self, Prefs, Option<String>) {
        let read = match std::fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text).map_err(|error| {
                let path = path.display();
                format!("Preferences could not be read, defaults are used: {error}: {path}")
            }),
            Err(_) => Ok(Prefs::default()),
        };
        let (mut prefs, message) = match read {
            Ok(prefs) => (prefs, None),
            Err(message) => (Prefs::default(), Some(message)),
        };
        prefs.recent.truncate(MAX_RECENT);
        (Self { path: Some(path), written: prefs.clone() }, prefs, message)
    }

    /// Writes what has changed; a message if that was not possible.
    pub fn save(&mut self, prefs: &Prefs) -> Option<String> {
        if self.written == *prefs {
            return None;
        }
        self.written = prefs.clone();
        let path = self.path.clone()?;
        write(&path, prefs).err().map(|problem| {
            // Once is enough: what cannot be written now cannot be written later either.
            self.path = None;
            format!("Preferences cannot be kept: {problem}")
        })
    }
}

fn write(path: &Path, prefs: &Prefs) -> Result<(), String> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).map_err(|error| error.to_string())?;
    }
    let text = serde_json::to_string_pretty(prefs).map_err(|error| error.to_string())?;
    write_whole(path, text.as_bytes())
}

fn directory() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let base = set("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".config")))?;
    Some(base.join("tilescope"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preferences_come_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deep/preferences.json");
        let (mut store, mut prefs, message) = Store::open_file(path.clone());
        assert_eq!(message, None);
        prefs.theme = ThemeChoice::Dark;
        prefs.remember(Path::new("a"));
        prefs.remember(Path::new("b"));
        prefs.remember(Path::new("a"));
        assert_eq!(store.save(&prefs), None);
        let (_, read, _) = Store::open_file(path);
        assert_eq!(read, prefs);
        let order: Vec<&Path> = read.recent.iter().map(|recent| recent.path.as_path()).collect();
        assert_eq!(order, [Path::new("a"), Path::new("b")]);
    }

    #[test]
    fn garbage_means_defaults_and_a_message() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("preferences.json");
        for garbage in ["", "[7", "{\"theme\": 7}", "\u{0}\u{1}"] {
            std::fs::write(&path, garbage).unwrap();
            let (_, prefs, message) = Store::open_file(path.clone());
            assert_eq!(prefs, Prefs::default());
            assert!(message.is_some(), "{garbage:?}");
        }
    }

    #[test]
    fn a_place_that_cannot_be_written_is_said_once() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "").unwrap();
        let (mut store, mut prefs, _) = Store::open_file(file.join("preferences.json"));
        prefs.narrow_menu = true;
        assert!(store.save(&prefs).is_some());
        prefs.narrow_menu = false;
        assert!(store.save(&prefs).is_none());
    }

    #[test]
    fn the_list_of_recent_reports_is_bounded() {
        let mut prefs = Prefs::default();
        for i in 0..100 {
            prefs.remember(Path::new(&i.to_string()));
        }
        assert_eq!(prefs.recent.len(), MAX_RECENT);
        assert_eq!(prefs.recent[0].path, Path::new("99"));
    }
}
