//! Tests that views over tiles show the results of the analyses: exchange code and traffic, the
//! placement of tensors, the memory of tiles.

use crate::common;
use egui::accesskit::Role;
use egui::{Key, Vec2};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use tilescope_analysis::exchange_code::{self, ExchangeFlow, ExchangeFlows};
use tilescope_analysis::{liveness, memory};
use tilescope_fixtures::ipu_stack_profile::IpuStackProfile;
use tilescope_gui::app::TilescopeApp;
use tilescope_gui::{OpenReport, theme};
use tilescope_report::trace::PerActivity;
use tilescope_report::units::{Bytes, IpuId, TileId, exact_bytes, grouped, percent};
use tilescope_report::{MachineInterface, Report, StepActivity};

struct State {
    app: TilescopeApp,
    report: Report,
    _directory: tempfile::TempDir,
}

type Window = Harness<'static, State>;

/// The MNIST pipeline in a view.
fn window(view: &str) -> Window {
    let directory = tempfile::tempdir().expect("temporary directory");
    let path = directory.path().join("report");
    let spec = common::spec("mnist_pipeline", &["options.device_iterations=1"]);
    common::report_file(&spec, &path);
    window_of(directory, &path, view)
}

/// A window on a view of a report.
fn window_of(directory: tempfile::TempDir, path: &Path, view: &str) -> Window {
    let opened = OpenReport::read(path).expect("opens");
    let report = Report::open(path).expect("opens");
    let mut app = TilescopeApp::detached(&egui::Context::default(), Some(opened));
    app.show_view(view);
    let state = State { app, report, _directory: directory };
    let mut window = Harness::builder()
        .with_size(Vec2::new(1500.0, 900.0))
        .with_context_setup(theme::install)
        .build_ui_state(
            |ui, state: &mut State| {
                state.app.logic(ui.ctx());
                state.app.ui(ui);
            },
            state,
        );
    settle(&mut window);
    window
}

fn settle(window: &mut Window) {
    let mut calm = 0;
    for _ in 0..400 {
        window.step();
        let workers = window.state().app.session().workers().clone();
        calm = if workers.busy() { 0 } else { calm + 1 };
        if calm == 4 {
            return;
        }
        workers.wait(Duration::from_secs(20));
    }
    panic!("the window never comes to rest");
}

fn says(window: &Window, words: &str) -> bool {
    window.query_all_by_label_contains(words).next().is_some()
}

fn press(window: &mut Window, role: Role, name: &str) {
    window.get_by_role_and_label(role, name).click();
    settle(window);
}

/// Opens a choice and selects one of its entries.
fn choose(window: &mut Window, choice: &str, words: &str) {
    press(window, Role::ComboBox, choice);
    let entries = window.query_all_by_label(words);
    let entry = entries.last().expect("an entry of the choice");
    entry.click();
    settle(window);
}

#[test]
fn exchange_code_is_that_of_the_report() {
    let mut window = window("exchange-code");
    let overview = exchange_code::overview(&window.state().report).expect("reads");
    for totals in &overview.links {
        assert!(says(&window, &exact_bytes(totals.stored.0)), "{totals:?}");
        assert!(says(&window, &grouped(totals.programs)), "{totals:?}");
    }
    press(&mut window, Role::Tab, "Programs");
    let programs = exchange_code::programs(&window.state().report, &[]).expect("reads");
    let largest = programs.iter().max_by_key(|row| row.traffic.code_bytes).expect("programs");
    assert!(says(&window, &largest.name));
    let all: Bytes = programs.iter().map(|row| row.traffic.code_bytes).sum();
    assert!(says(&window, &exact_bytes(all.0)), "the row of totals");
}

#[test]
fn views_link_to_the_activity_of_measured_tiles() {
    for view in ["exchange-code", "tile-mapping"] {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join("profile.capnp");
        std::fs::write(&path, IpuStackProfile::layers(8, 3).bytes()).expect("written");
        let mut window = window_of(directory, &path, view);
        press(&mut window, Role::Button, "Show tiles in the trace");
        settle(&mut window);
        assert!(says(&window, "of tiles at the cursor"), "{view}");
    }
}

#[test]
fn selecting_a_program_shows_its_traffic() {
    let mut window = window("exchange-code");
    choose(&mut window, "Show", "Traffic matrix");
    let whole = window.get_by_label("Traffic matrix").accesskit_node().value();
    press(&mut window, Role::Tab, "Programs");
    press(&mut window, Role::Label, "inter-ipu-copies/GlobalPre");
    let part = window.get_by_label("Traffic matrix").accesskit_node().value();
    assert_ne!(whole, part);
    let traffic = exchange_code::programs(&window.state().report, &[]).expect("reads");
    let copies = traffic.iter().find(|row| row.name.contains("inter-ipu-copies")).expect("copies");
    // All of it is recorded for copies between IPUs; some of the traffic inside an IPU is assumed.
    let bytes = grouped(copies.traffic.bytes_in.0);
    let caption = format!("{bytes} B in view; sender and receiver known for 100.0 %");
    assert_eq!(part, Some(caption));
    assert!(!says(&window, "Estimated for "));
    press(&mut window, Role::Button, "All programs");
    assert_eq!(window.get_by_label("Traffic matrix").accesskit_node().value(), whole);
    let flows = ExchangeFlows::read(&window.state().report).expect("reads").flows;
    let bytes = |flows: &mut dyn Iterator<Item = &ExchangeFlow>| -> Bytes {
        flows.map(|flow| flow.bytes).sum()
    };
    let assumed = &mut flows.iter().filter(|flow| !flow.pattern.is_known());
    let share = bytes(assumed).as_f64() / bytes(&mut flows.iter()).as_f64();
    assert!(share > 0.0 && share < 0.5, "{share}");
    assert!(says(&window, &format!("Estimated for {} of the bytes", percent(share))));
}

#[test]
fn an_exchange_links_to_its_tiles_and_to_the_trace_and_back() {
    use tilescope_analysis::exchange_code::{exchange_cycles, exchange_tiles, explain_exchange};
    use tilescope_report::ProgramKind;
    use tilescope_report::units::NumberFormat;
    let mut window = window("exchange-code");
    press(&mut window, Role::Tab, "Details");
    assert!(says(&window, "Select an exchange under Cycles"));
    press(&mut window, Role::Tab, "Cycles");
    let found = exchange_cycles(&window.state().report).expect("reads");
    let internal = found.rows.iter().filter(|row| row.kind == ProgramKind::DoExchange);
    let row = internal.max_by_key(|row| row.run.and_then(|run| run.avoidable())).expect("a row");
    assert!(says(&window, &grouped(row.run.and_then(|run| run.avoidable()).expect("known").0)));
    let name = row.name.clone();
    window.query_all_by_role_and_label(Role::Row, &name).next().expect("its row").click();
    settle(&mut window);
    assert_eq!(window.state().app.session().selection().program, Some(row.program));
    // Its tiles are on the floor plan, with their sent and received bytes.
    for (map, busiest) in [
        ("What tiles send", row.traffic.and_then(|of| of.sender)),
        ("What tiles receive", row.traffic.and_then(|of| of.receiver)),
    ] {
        let value = window.get_by_role_and_label(Role::Canvas, map).accesskit_node().value();
        let most = exact_bytes(busiest.expect("moves something").bytes.0);
        assert!(value.as_ref().is_some_and(|value| value.ends_with(&most)), "{map}: {value:?}");
    }
    press(&mut window, Role::Tab, "Hot tiles");
    let tiles = exchange_tiles(&window.state().report, row.program).expect("reads");
    assert!(says(&window, &format!("{} rows", grouped(tiles.len() as u64))));
    let hottest = format!("Tile {}", grouped(tiles[0].tile.into()));
    window.query_all_by_role_and_label(Role::Row, &hottest).next().expect("its row").click();
    settle(&mut window);
    assert_eq!(window.state().app.session().selection().tiles, [tiles[0].tile]);
    press(&mut window, Role::Tab, "Details");
    for line in explain_exchange(row, &found.machine, NumberFormat::default()) {
        assert!(says(&window, &line.sentence), "{line:?}");
    }
    // To the step, and from there back to this exchange.
    press(&mut window, Role::Link, "Show in Execution trace");
    let step = window.state().app.session().selection().step.expect("a step");
    let details = window.state().report.step(step.step).expect("reads").expect("there");
    assert_eq!((details.program, step.at.ipu), (Some(row.program), row.ipu));
    press(&mut window, Role::Tab, "Details");
    press(&mut window, Role::Link, "Show in Exchange code");
    assert!(says(&window, "Lower bound") && says(&window, "Hot tiles"));
    assert_eq!(window.state().app.session().selection().program, Some(row.program));
}

#[test]
fn a_tensor_is_mapped_as_in_the_report() {
    use tilescope_analysis::tile_mapping::{MappingSubject, MappingSubjectKind, mapping, subjects};
    let mut window = window("tile-mapping");
    let report = &window.state().report;
    let (entries, whole) = subjects(report, MappingSubjectKind::Tensors).expect("reads");
    assert!(whole);
    let largest = entries.iter().max_by_key(|entry| entry.size).expect("tensors").clone();
    let rearranged = |entry: &&tilescope_analysis::tile_mapping::MappingListEntry| {
        let found = mapping(report, entry.subject).expect("reads").expect("is there");
        matches!(entry.subject, MappingSubject::Operation(_)) && !found.rearrangements.is_empty()
    };
    let (operations, _) = subjects(report, MappingSubjectKind::Operations).expect("reads");
    let operation = operations.iter().find(rearranged).expect("a rearrangement").clone();
    assert!(says(&window, &largest.name));
    assert!(says(&window, &exact_bytes(largest.size)));
    choose(&mut window, "Map", "Operations");
    window.get_by_label("Filter by name").focus();
    window.step();
    window.get_by_label("Filter by name").type_text(&operation.name);
    settle(&mut window);
    let row = window.query_all_by_role_and_label(Role::Label, &operation.name).next();
    row.expect("the row of the operation").click();
    settle(&mut window);
    let chosen = window.state().app.session().selection().operation;
    assert_eq!(chosen.map(MappingSubject::Operation), Some(operation.subject));
    let found = mapping(&window.state().report, operation.subject).expect("reads");
    let count = found.expect("is there").rearrangements.len();
    press(&mut window, Role::Tab, &format!("Rearrangements ({count})"));
    assert!(says(&window, "Before: what tiles send") && says(&window, "After: what tiles receive"));
}

/// A link to an operation shows its map, in the list of operations.
#[test]
fn a_link_to_an_operation_shows_its_tiles() {
    use tilescope_report::units::OperationId;
    let mut window = window("memory");
    let id = OperationId(7);
    let name = window.state().report.operations().expect("reads")[id.index()].name.clone();
    let context = window.ctx.clone();
    let at = format!("tilescope:?view=tile-mapping&select.operation={}", id.0);
    let path = window.state().app.session().page().expect("a page").opened().path.clone();
    window.state_mut().app.open_at(&context, Some(&path), None, Some(&at));
    for _ in 0..200 {
        settle(&mut window);
        if window.state().app.session().selection().operation.is_some() {
            break;
        }
    }
    assert_eq!(window.state().app.session().selection().operation, Some(id));
    assert!(says(&window, &name), "{name}");
    let map = window.get_by_role_and_label(Role::ComboBox, "Map");
    assert_eq!(map.accesskit_node().value().as_deref(), Some("Operations"));
}

#[test]
fn memory_shows_the_floor_plan_a_variable_and_compute_sets() {
    use tilescope_analysis::memory;
    let mut window = window("memory");
    choose(&mut window, "Graph", "Tile map");
    let report = &window.state().report;
    let most = report.tile_memory().expect("reads").map(memory::needed).max();
    let map = window.get_by_label("Memory on the floor plan").accesskit_node().value();
    assert!(map.is_some_and(|words| words.ends_with(&exact_bytes(most.0))));
    press(&mut window, Role::Tab, "Compute sets");
    let sets = memory::compute_sets(&window.state().report, &[]).expect("reads");
    let vertices: u64 = sets.rows.iter().map(|row| row.count).sum();
    assert!(says(&window, &grouped(vertices)), "the row of totals");
    press(&mut window, Role::Tab, "Variables");
    choose(&mut window, "Group by", "No groups");
    choose(&mut window, "Graph", "Selected variables");
    assert!(says(&window, "Select a variable in the table below"));
    let listing = memory::variables(&window.state().report, &[]).expect("reads");
    let largest =
        (0..listing.rows.len()).max_by_key(|at| listing.rows[*at].bytes[0]).expect("some");
    let row = window.query_all_by_role_and_label(Role::Row, &listing.rows[largest].name).next();
    row.expect("its row").click();
    settle(&mut window);
    let chosen = window.state().app.session().selection().variable;
    assert_eq!(chosen, Some(listing.variables[largest]));
    assert!(says(&window, "Memory of the selected variables by tile"));
}

#[test]
fn every_tile_has_its_row_below_the_bars() {
    let mut window = window("execution-trace");
    // High enough for the rows of all tiles.
    window.set_size(Vec2::new(1500.0, 1600.0));
    settle(&mut window);
    let label = "Tiles of IPU 0";
    assert!(!says(&window, label));
    press(&mut window, Role::CheckBox, "BSP");
    assert!(says(&window, label));
    press(&mut window, Role::Button, "View");
    for _ in 0..2 {
        press(&mut window, Role::Button, "+");
    }
    let high = window.get_by_label(label).rect().height();
    press(&mut window, Role::Button, "−");
    assert!(window.get_by_label(label).rect().height() < high);
}

#[test]
fn the_memory_map_holds_every_variable_of_a_tile() {
    use tilescope_analysis::bank_map::bank_map;
    let mut window = window("memory");
    press(&mut window, Role::Tab, "Variables");
    window.get_by_label("Memory map").click();
    settle(&mut window);
    let label = window.get_by_label("Select tiles, e.g. 1 or 0,3-5");
    label.focus();
    window.step();
    window.get_by_label("Select tiles, e.g. 1 or 0,3-5").type_text("1500");
    settle(&mut window);
    let map = bank_map(&window.state().report, TileId(1500)).expect("reads");
    let value = window.get_by_label("Memory map of tile 1,500").accesskit_node().value();
    assert_eq!(value, Some(format!("{} variables in {} rows", map.placed.len(), map.rows)));
    let memory = window.state().report.tile_memory().expect("reads");
    let always = map.placed.iter().filter(|part| part.lifetime.is_none());
    let bytes: Bytes = always.map(|part| part.addresses.end - part.addresses.start).sum();
    assert_eq!(memory.get(TileId(1500)).map(|tile| tile.always_live), Some(bytes));
    window.get_by_label("Memory map of tile 1,500").focus();
    // Arrow keys go to a widget that has had the focus for a frame.
    window.run_steps(2);
    window.key_press(Key::ArrowRight);
    settle(&mut window);
    assert_eq!(window.state().app.session().selection().variable, Some(map.placed[0].id));
}

#[test]
fn floating_point_work_is_that_of_the_operations() {
    use tilescope_analysis::operations::{OperationLayer, operations};
    let mut window = window("operations");
    let rows = operations(&window.state().report, OperationLayer::Model).expect("reads");
    let row = rows.iter().max_by_key(|row| row.elapsed).expect("operations").clone();
    window.query_all_by_role_and_label(Role::Row, &row.name).next().expect("its row").click();
    settle(&mut window);
    press(&mut window, Role::Tab, "FLOPs");
    assert!(says(&window, &format!("{} FLOPs", grouped(row.flops * row.executions))));
    press(&mut window, Role::Tab, "Debug");
    assert!(says(&window, &row.shapes));
}

#[test]
fn keys_move_through_the_memory_of_a_tile_by_address() {
    let mut window = window("liveness");
    choose(&mut window, "Graph", "By address");
    assert!(says(&window, "the fullest tile") && says(&window, "fragmentation"));
    let tile = memory::fullest_tile(&window.state().report).expect("reads");
    let name = format!("Memory by address of tile {}", grouped(tile.into()));
    let timeline = liveness::by_address(&window.state().report, tile).expect("reads").unwrap();
    let peak = timeline.peak().expect("steps");
    // The peak is shown until a step is selected: the next one follows it.
    for key in [Key::ArrowRight, Key::ArrowUp, Key::ArrowUp] {
        window.get_by_role_and_label(Role::Canvas, &name).focus();
        settle(&mut window);
        window.key_press(key);
        settle(&mut window);
    }
    let selection = window.state().app.session().selection().clone();
    assert_eq!(selection.program, Some(timeline.programs[peak as usize + 1]));
    let live: Vec<_> = timeline.live_in(peak + 1..peak + 2).map(|(_, of)| of.id).collect();
    assert_eq!(selection.variable, Some(live[1]));
    // The largest block below the highest variable is named, with a link to it.
    let highest = timeline.highest().expect("variables");
    let highest = &timeline.placed[highest.place];
    window.get_by_role_and_label(Role::Link, &highest.name).click();
    settle(&mut window);
    assert_eq!(window.state().app.session().selection().variable, Some(highest.id));
    press(&mut window, Role::Tab, "Free blocks");
    assert!(says(&window, "Above until"));
}

#[test]
fn links_carry_what_the_steps_of_an_ipu_move() {
    let mut window = window("execution-trace");
    press(&mut window, Role::Button, "View");
    press(&mut window, Role::CheckBox, "Links");
    // A click outside closes the menu.
    press(&mut window, Role::Button, "Whole run");
    let report = &window.state().report;
    let trace = report.trace().expect("reads").expect("steps");
    let limits = report.machine_limits().expect("reads");
    let limit = limits.bytes_per_cycle(MachineInterface::IpuLinks).expect("known");
    for ipu in (0..4).map(IpuId) {
        let totals = trace.lane_of(ipu, 0).expect("a lane").all_totals().expect("reads");
        let most = trace.range().length().as_f64() * limit;
        let share = |bytes: &PerActivity<Bytes>| {
            percent(bytes[StepActivity::GlobalExchange].as_f64() / most)
        };
        let (sent, received) = (share(&totals.bytes_out), share(&totals.bytes_in));
        let words = format!("sent {sent}, received {received} of the link capacity");
        let name = format!("Links of IPU {ipu}");
        let node = window.get_by_label(&name);
        assert_eq!(node.accesskit_node().value(), Some(words));
    }
}

#[test]
fn the_floor_plan_follows_the_selected_step() {
    let mut window = window("execution-trace");
    press(&mut window, Role::Tab, "Tiles");
    window.get_by_role_and_label(Role::Canvas, "Active cycles of tiles at the cursor");
    window.get_by_role_and_label(Role::Canvas, "Lanes").focus();
    settle(&mut window);
    let mut cycles = BTreeSet::new();
    for _ in 0..3 {
        window.key_press(Key::ArrowRight);
        settle(&mut window);
        settle(&mut window);
        let step = window.state().app.session().selection().step.expect("a step");
        let trace = window.state().report.trace().expect("reads").expect("steps");
        let lane = trace.lane_at(step.at, step.sub_lane).expect("a lane");
        let start = lane.step(step.position).expect("reads").expect("there").range.start;
        assert!(says(&window, &format!("Cycle {start}: ")), "{start}");
        cycles.insert(start);
    }
    assert!(cycles.len() > 1, "the steps follow each other");
    for figure in ["Waiting cycles", "Sent", "Received", "Live memory"] {
        press(&mut window, Role::Button, figure);
        window.get_by_role_and_label(Role::Canvas, &format!("{figure} of tiles at the cursor"));
    }
}
