//! A request to use a control of a view, kept until the view shows the control and uses it.

use egui::{Context, Id};

/// The location of a control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ControlKind {
    /// In the toolbar above a view, or beside the tabs of its tables.
    Strip,
    /// One of the tabs of its tables.
    Tab,
}

/// The name of the control's view, and the name of the control.
#[derive(Clone, Copy, PartialEq, Eq)]
struct RequestedControl {
    view: &'static str,
    kind: ControlKind,
    control: &'static str,
}

fn request_id() -> Id {
    Id::unique("requested control")
}

/// Requests that a control be used as if it were clicked, once its view is shown.
pub(crate) fn request_control(
    context: &Context,
    view: &'static str,
    (kind, control): (ControlKind, &'static str),
) {
    let request = RequestedControl { view, kind, control };
    context.data_mut(|data| data.insert_temp(request_id(), request));
}

/// Discards a request whose control did not appear.
pub(crate) fn forget_request(context: &Context) {
    context.data_mut(|data| data.remove::<RequestedControl>(request_id()));
}

/// Takes the request for a control of tables in any view. Returns true once per request.
pub(crate) fn takes_request_of_table(context: &Context, control: &str) -> bool {
    let request: Option<RequestedControl> = context.data(|data| data.get_temp(request_id()));
    let wanted = request.is_some_and(|of| of.kind == ControlKind::Strip && of.control == control);
    if wanted {
        forget_request(context);
    }
    wanted
}

/// Takes the request for a control of this kind in the view. Returns true once per request.
pub(crate) fn takes_request(
    context: &Context,
    view: &str,
    kind: ControlKind,
    is_it: impl Fn(&str) -> bool,
) -> bool {
    let request: Option<RequestedControl> = context.data(|data| data.get_temp(request_id()));
    let wanted = request.is_some_and(|of| of.view == view && of.kind == kind && is_it(of.control));
    if wanted {
        forget_request(context);
    }
    wanted
}
