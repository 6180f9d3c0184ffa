//! Tests of reports on other machines in the window: connecting, and each possible failure. `ssh`
//! is a script that runs a local shell, or does something else.

use crate::gui_support::{Window, click, press, press_role, says, settle, show_view, window_of};
use egui::accesskit::Role;
use egui::{Event, Key, Modifiers, Vec2};
use egui_kittest::kittest::Queryable;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;
use tilescope_gui::app::TilescopeApp;
use tilescope_report::remote::RemoteSettings;

const SIZE: Vec2 = Vec2::new(1280.0, 1000.0);

/// The behaviour of `ssh` by host. Processes are recorded as files in a directory of the test.
const SSH: &str = r#"#!/bin/sh
while [ "$1" != "--" ]; do shift; done
host=$2
case $host in
    works) exec sh ;;
    breaks)
        if [ -e "PLACE/broken" ]; then exec sh
        else touch "PLACE/broken"; sh | dd bs=1 count=60000 2> /dev/null; fi ;;
    stranger) echo "Host key verification failed." >&2; exit 255 ;;
    closed) echo "me@closed: Permission denied (publickey)." >&2; exit 255 ;;
    bare) echo "'exec' is not recognized" >&2; exit 1 ;;
    chatty) echo "Welcome to chatty"; exec sh ;;
    noise) head -c 200000 /dev/zero ;;
    hangs) echo $$ > "PLACE/hanging"; exec sleep 600 ;;
esac
"#;

/// The directory of the script and its output.
fn place() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| {
        let place = tempfile::tempdir().unwrap().keep();
        let script = SSH.replace("PLACE", place.to_str().unwrap());
        let ssh = place.join("ssh");
        std::fs::write(&ssh, script).unwrap();
        std::fs::set_permissions(&ssh, std::fs::Permissions::from_mode(0o755)).unwrap();
        let ssh = Some(ssh.to_str().unwrap().to_owned());
        let copies = Some(place.join("copies"));
        RemoteSettings { ssh, without_terminal: true, copies, ..RemoteSettings::default() }.set();
        place
    })
}

/// The home screen with the remote tab.
fn remote_tab() -> Window {
    place();
    let mut window = window_of(TilescopeApp::detached(&egui::Context::default(), None), SIZE, 1.0);
    click(&mut window, Role::Tab, "Remote");
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
        show_view(&mut window, view);
        assert!(!says(&window, "connection"), "{view}");
    }
}

#[test]
fn output_of_a_login_script_is_ignored() {
    let mut window = remote_tab();
    connect(&mut window, "chatty", &sample());
    until(&mut window, "open", is_open);
}

#[test]
fn each_failure_is_reported_and_can_be_retried() {
    let nowhere = "/nowhere/at/all".to_owned();
    let cases = [
        ("stranger", sample(), "does not trust the key of stranger"),
        ("closed", sample(), "denied access"),
        ("bare", sample(), "no POSIX shell answers on bare"),
        ("noise", sample(), "no POSIX shell answers on noise"),
        ("works", nowhere, "no such file or directory: ssh://works/nowhere/at/all"),
    ];
    for (host, path, words) in cases {
        let mut window = remote_tab();
        connect(&mut window, host, &path);
        until(&mut window, words, |window| says(window, words));
        assert!(!is_open(&window));
        assert!(press_role(&mut window, Role::Button, "Dismiss message"));
        settle(&mut window);
        assert!(window.state().session().messages().is_empty());
        assert!(press_role(&mut window, Role::Button, "Try again"));
        until(&mut window, "tried again", |window| !window.state().session().messages().is_empty());
    }
}

#[test]
fn a_copy_resumes_after_a_lost_connection() {
    let mut window = remote_tab();
    connect(&mut window, "breaks", &sample());
    let words = "the connection to breaks was lost";
    until(&mut window, words, |window| says(window, words));
    assert!(press_role(&mut window, Role::Button, "Try again"));
    until(&mut window, "open", is_open);
}

#[test]
fn invalid_addresses_are_reported_while_typing() {
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
fn remote_bookmarks_lead_to_places_in_the_report() {
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
