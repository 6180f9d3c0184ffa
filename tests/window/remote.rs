//! Reports on other machines in the window: connecting, what goes wrong on the way, and lost
//! connections. `ssh` is a script that runs this program's `serve`, or does something else.

use crate::gui_support::{Window, press, press_role, says, settle, window_of};
use egui::accesskit::Role;
use egui::{Event, Key, Modifiers, Vec2};
use egui_kittest::kittest::Queryable;
use std::io::pipe;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;
use tilescope_gui::app::TilescopeApp;
use tilescope_gui::{OpenReport, Theme, picture};
use tilescope_report::remote::{RemoteSettings, open_through_pipes, serve};

const SIZE: Vec2 = Vec2::new(1280.0, 1000.0);

/// What `ssh` does, by host. Processes are known by files in a directory of the test.
const SSH: &str = r#"#!/bin/sh
while [ "$1" != "--" ]; do shift; done
host=$2
case $host in
    works) exec "PROGRAM" serve --stdio ;;
    breaks)
        echo $$ > "PLACE/pid"
        exec "PROGRAM" serve --stdio ;;
    stranger) echo "Host key verification failed." >&2; exit 255 ;;
    closed) echo "me@closed: Permission denied (publickey)." >&2; exit 255 ;;
    bare) echo "sh: 1: tilescope: not found" >&2; exit 127 ;;
    old) echo "error: there is no command or report named \"serve\"" >&2; exit 2 ;;
    chatty) echo "Welcome to chatty"; exec "PROGRAM" serve --stdio ;;
    noise) head -c 200000 /dev/zero ;;
    hangs) echo $$ > "PLACE/hanging"; exec sleep 600 ;;
esac
"#;

/// Where the script is, and what it writes.
fn place() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| {
        let place = tempfile::tempdir().unwrap().keep();
        let script = SSH
            .replace("PROGRAM", env!("CARGO_BIN_EXE_tilescope"))
            .replace("PLACE", place.to_str().unwrap());
        let ssh = place.join("ssh");
        std::fs::write(&ssh, script).unwrap();
        std::fs::set_permissions(&ssh, std::fs::Permissions::from_mode(0o755)).unwrap();
        let ssh = Some(ssh.to_str().unwrap().to_owned());
        RemoteSettings { ssh, program: None, without_terminal: true }.set();
        place
    })
}

/// The home screen with the remote tab.
fn remote_tab() -> Window {
    place();
    let mut window = window_of(TilescopeApp::detached(&egui::Context::default(), None), SIZE, 1.0);
    window.get_by_role_and_label(Role::Tab, "Remote").click();
    settle(&mut window);
    window
}

fn type_into(window: &mut Window, label: &str, text: &str) {
    window.get_by_role_and_label(Role::TextInput, label).focus();
    window.step();
    press(window, Modifiers::COMMAND, Key::A);
    window.event(Event::Text(text.to_owned()));
    window.step();
}

fn connect(window: &mut Window, host: &str, path: &str) {
    type_into(window, "Host", host);
    type_into(window, "Path on the host", path);
    window.get_by_role_and_label(Role::Button, "Connect").click();
    window.step();
}

fn sample() -> String {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample_reports");
    samples.join("mnist_pipeline").to_str().unwrap().to_owned()
}

fn until(window: &mut Window, words: &str, holds: impl Fn(&Window) -> bool) {
    for _ in 0..6_000 {
        window.step();
        if holds(window) {
            return settle(window);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let messages = window.state().session().messages();
    panic!("never: {words}; messages: {messages:?}");
}

fn is_open(window: &Window) -> bool {
    window.state().session().page().is_some()
}

#[test]
fn a_report_on_another_machine_is_opened_and_looked_at() {
    let mut window = remote_tab();
    window.check_accessibility();
    connect(&mut window, "works", &sample());
    until(&mut window, "open", is_open);
    let session = window.state().session();
    let page = session.page().unwrap();
    assert_eq!(
        page.opened().report.path().to_str().unwrap(),
        format!("ssh://works{}/profile.pop", sample())
    );
    assert_eq!(session.prefs().remote.host, "works");
    let recent = session.prefs().recent[0].path.to_str().unwrap().to_owned();
    assert_eq!(recent, format!("ssh://works{}", sample()));
    assert_eq!(session.tab_titles(), ["mnist_pipeline"]);
    let link = session.link().unwrap().to_string();
    assert!(link.starts_with("tilescope:ssh"), "{link}");
    for view in tilescope_gui::view_names() {
        window.state_mut().show_view(view);
        settle(&mut window);
        assert!(!says(&window, "connection"), "{view}");
    }
    let traffic = window.state().session().page().unwrap().opened().report.traffic().unwrap();
    assert!(traffic.questions > 10 && traffic.bytes_received > 0);
}

#[test]
fn what_a_login_script_prints_does_no_harm() {
    let mut window = remote_tab();
    connect(&mut window, "chatty", &sample());
    until(&mut window, "open", is_open);
}

#[test]
fn each_failure_is_told_and_can_be_tried_again() {
    let nowhere = "/nowhere/at/all".to_owned();
    let cases = [
        ("stranger", sample(), "does not trust the key of stranger"),
        ("closed", sample(), "does not let you in"),
        ("bare", sample(), "there is no tilescope on bare"),
        ("old", sample(), "does not know `serve`"),
        ("noise", sample(), "no tilescope"),
        ("works", nowhere, "no such file or directory: ssh://works/nowhere/at/all"),
    ];
    for (host, path, words) in cases {
        let mut window = remote_tab();
        connect(&mut window, host, &path);
        until(&mut window, words, |window| says(window, words));
        assert!(!is_open(&window));
        let count = window.state().session().messages().len();
        assert!(press_role(&mut window, Role::Button, "Try again"));
        until(&mut window, "tried again", |window| {
            window.state().session().messages().len() > count
        });
    }
}

#[test]
fn what_cannot_be_an_address_is_told_while_it_is_typed() {
    let mut window = remote_tab();
    for host in ["-oProxyCommand=x", "a b", "host:x"] {
        type_into(&mut window, "Host", host);
        type_into(&mut window, "Path on the host", "/a");
        settle(&mut window);
        assert!(says(&window, "an address is ssh://"), "{host}");
    }
}

#[test]
fn connecting_can_be_cancelled_and_ends_ssh() {
    let mut window = remote_tab();
    connect(&mut window, "hangs", &sample());
    until(&mut window, "connecting", |window| says(window, "connecting to hangs"));
    let pid = place().join("hanging");
    while !pid.exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let process = PathBuf::from("/proc").join(std::fs::read_to_string(&pid).unwrap().trim());
    assert!(!cfg!(target_os = "linux") || process.exists());
    window.get_by_role_and_label(Role::Button, "Cancel").click();
    window.step();
    window.step();
    assert!(window.state().session().opening_path().is_none());
    for _ in 0..1000 {
        if !process.exists() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("ssh goes on");
}

#[test]
fn a_lost_connection_is_told_above_the_view_and_made_again() {
    let mut window = remote_tab();
    connect(&mut window, "breaks", &sample());
    until(&mut window, "open", is_open);
    let pid = std::fs::read_to_string(place().join("pid")).unwrap();
    let killed = std::process::Command::new("kill").arg(pid.trim()).status().unwrap();
    assert!(killed.success());
    until(&mut window, "lost", |window| says(window, "the connection to breaks was lost"));
    window.state_mut().show_view("operations");
    settle(&mut window);
    assert!(is_open(&window));
    window.get_by_role_and_label(Role::Button, "Reconnect").click();
    until(&mut window, "open again", |window| {
        let page = window.state().session().page().unwrap();
        page.opened().report.connection_lost().is_none()
    });
    assert!(!says(&window, "was lost"));
    assert_eq!(window.state().session().page().unwrap().view().name(), "operations");
}

/// What it may take to open the sample and draw a view of it: round trips, and bytes that travel.
const FIRST_PICTURES: [(&str, u64, u64); 5] = [
    ("summary", 30, 250_000),
    ("execution-trace", 20, 250_000),
    ("liveness", 15, 250_000),
    ("operations", 40, 250_000),
    ("memory", 8, 250_000),
];

#[test]
fn first_pictures_take_few_round_trips_and_bytes() {
    let address = PathBuf::from(format!("ssh://pod16{}", sample()));
    for (view, round_trips, bytes) in FIRST_PICTURES {
        let (questions, ask) = pipe().unwrap();
        let (answers, answer) = pipe().unwrap();
        std::thread::spawn(move || serve(questions, answer, None));
        let report = open_through_pipes(&address, answers, ask).unwrap();
        let opened = OpenReport::of(address.clone(), report).unwrap();
        let report = opened.report.clone();
        picture(Some(opened), view, (1280, 900), Theme::Dark);
        let traffic = report.traffic().unwrap();
        assert!(traffic.round_trips <= round_trips, "{view}: {traffic:?}");
        assert!(traffic.bytes_sent + traffic.bytes_received <= bytes, "{view}: {traffic:?}");
    }
}

#[test]
fn bookmarks_beside_a_report_on_another_machine_lead_to_places_in_it() {
    let directory = tempfile::tempdir().unwrap();
    let report = directory.path().join("profile.pop");
    std::fs::copy(Path::new(&sample()).join("profile.pop"), &report).unwrap();
    let notes = directory.path().join("tilescope-notes.json");
    let link = format!("tilescope:{}?view=memory", report.display());
    let bookmark = serde_json::json!({ "name": "the fullest tile", "note": "", "link": link });
    let words = serde_json::json!({ "format": 1, "bookmarks": [bookmark] }).to_string();
    std::fs::write(&notes, &words).unwrap();
    let mut window = remote_tab();
    connect(&mut window, "works", directory.path().to_str().unwrap());
    until(&mut window, "open", is_open);
    press(&mut window, Modifiers::CTRL | Modifiers::SHIFT, Key::M);
    let name = window.get_by_label("Name of bookmark 1").value().unwrap();
    assert_eq!(name, "the fullest tile");
    window.get_by_role_and_label(Role::Button, "Go there").click();
    until(&mut window, "there", |window| {
        window.state().session().page().unwrap().view().name() == "memory"
    });
    assert_eq!(window.state().session().tab_titles().len(), 1);
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), words);
}
