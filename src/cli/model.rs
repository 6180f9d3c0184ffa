//! `model`: lists the numbers of the cost model that are on no data sheet, and their effects.

mod sensitivity;

use super::command::{CliCommand, CliError, json_argument};
use clap::{Arg, ArgAction, ArgMatches};
use serde_json::{Value, json};
use std::io::Write;
use tilescope_sim::cost_constants::{self, ConstantKind, CostConstant};

/// `tilescope model`
pub(super) const COMMAND: CliCommand = CliCommand { name: "model", arguments, run };

fn arguments(command: clap::Command) -> clap::Command {
    command
        .about("List the constants of the cost model that are on no data sheet, and what depends \
                on each")
        .arg(json_argument())
        .arg(
            Arg::new("sensitivity")
                .long("sensitivity")
                .action(ArgAction::SetTrue)
                .help("Print the effect of 10 % less and more of each constant on simulated \
                       programs"),
        )
        .arg(
            Arg::new("specs")
                .value_name("SPEC")
                .num_args(0..)
                .requires("sensitivity")
                .help("Programs to simulate: TOML files or bundled specs (default: five fast ones)"),
        )
        .arg(
            Arg::new("constant")
                .long("constant")
                .value_name("NAME")
                .action(ArgAction::Append)
                .requires("sensitivity")
                .help("Change only this constant; can be repeated"),
        )
        .arg(
            // Used for child processes of this command: figures with one constant changed.
            Arg::new("figures")
                .long("figures")
                .value_name("NAME=VALUE")
                .num_args(0..=1)
                .default_missing_value("")
                .hide(true)
                .conflicts_with_all(["constant", "json"]),
        )
        .after_help(
            "Examples:\n  tilescope model\n  tilescope model --sensitivity\n  \
             tilescope model --sensitivity mnist_pipeline my_model.toml --constant EXCHANGE_START_CYCLES",
        )
}

fn run(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    let specs: Vec<&String> = matches.get_many("specs").into_iter().flatten().collect();
    let as_json = matches.get_flag("json");
    if let Some(change) = matches.get_one::<String>("figures") {
        return sensitivity::figures(change, &specs, output);
    }
    if matches.get_flag("sensitivity") {
        let names = matches.get_many::<String>("constant").into_iter().flatten();
        let chosen: Result<Vec<_>, _> = names.map(|name| cost_constants::named(name)).collect();
        return sensitivity::run(&chosen?, &specs, as_json, output);
    }
    if as_json {
        let list: Vec<Value> = cost_constants::all().map(constant_json).collect();
        return super::command::print_json(&Value::Array(list), output);
    }
    table(output)
}

fn constant_json(constant: &CostConstant) -> Value {
    json!({
        "name": constant.name,
        "value": constant.value,
        "unit": constant.unit.name(),
        "kind": constant.kind.name(),
        "meaning": constant.meaning,
        "source": constant.source,
        "serves": constant.serves,
    })
}

/// The constants by kind, the most certain first.
fn table(output: &mut dyn Write) -> Result<(), CliError> {
    let width = cost_constants::all().map(|constant| constant.name.len()).max().unwrap_or(0);
    for kind in ConstantKind::ALL {
        let iter_constants = || cost_constants::all().filter(move |constant| constant.kind == kind);
        writeln!(output, "{} ({})", kind.name(), iter_constants().count())?;
        for constant in iter_constants() {
            let value = format!("{} {}", constant.value_text(), constant.unit.name());
            writeln!(output, "  {:width$}  {value:22}  {}", constant.name, constant.meaning)?;
            let CostConstant { source, serves, .. } = constant;
            writeln!(output, "  {:width$}  {:22}  from: {source}; for: {serves}", "", "")?;
        }
    }
    Ok(())
}
