//! Planner and lowering against the profile of Graphcore's matmul tutorial. Single operations are in
//! `tests/validate.rs`.

use tilescope::sim::graph::DType;
use tilescope::sim::lower::constants::{COMPUTE_START_CYCLES, EXCHANGE_START_CYCLES};
use tilescope::sim::lower::conv::{self, Source};
use tilescope::sim::lower::work::{Phase, PhaseKind, Work};
use tilescope::sim::planner::{ConvParams, Machine, Pass, Plan, PlanOptions, plan};
use tilescope::sim::targets::chip;

fn plan_matmul(machine: &Machine, params: &ConvParams) -> Plan {
    plan(machine, params, &PlanOptions::new(Pass::MatMul)).expect("a plan")
}

/// Cycles of the slowest tile in the phase of this name.
fn phase_cycles(work: &Work, name: &str) -> u64 {
    let of_phase = |(phase, _): (&Phase, u64)| match &phase.kind {
        PhaseKind::Exchange { cycles, .. } | PhaseKind::Compute { cycles, .. } => cycles.max(),
    };
    let named = |(phase, _): &(&Phase, u64)| phase.name == name;
    work.phases().into_iter().find(named).map(of_phase).expect("a phase of this name")
}

/// The conv vertices of a work: how many, their edges, the bytes of their work lists.
fn vertex_sums(work: &Work) -> [u64; 3] {
    let mut sums = [0; 3];
    for (phase, _) in work.phases() {
        let PhaseKind::Compute { vertices, .. } = &phase.kind else { continue };
        for vertex in vertices.iter().filter(|vertex| vertex.vertex_type.contains("::ConvPartial"))
        {
            let count = vertex.count.total();
            for (sum, each) in sums.iter_mut().zip([1, vertex.edges, vertex.constant_bytes]) {
                *sum += count * each;
            }
        }
    }
    sums
}

/// Graphcore's matmul tutorial on a Mk2: float 800x500 by 500x400, then by 400x200. Its profile
/// shows 1,400 and 1,350 conv vertices, 45,700 edges and 99,000 bytes of work lists for both
/// together; the first product takes about 15,240 cycles from the exchange of its operands to the
/// end of its vertices, and 3,430 for its reduction.
#[test]
fn matmul_tutorial() {
    let machine = Machine::whole(*chip("mk2").expect("a chip"));
    let lowered = |m, k, n| {
        let params = ConvParams::matmul(DType::Float, 1, m, k, n);
        let plan = plan_matmul(&machine, &params);
        let work = conv::forward(&machine, &plan, Source::Planned, Source::Planned);
        (plan, work)
    };
    let (first_plan, first) = lowered(800, 500, 400);
    let (second_plan, second) = lowered(800, 400, 200);
    let split = |plan: &Plan| {
        let partition = &plan.partition;
        [partition.field_parts(), partition.out_channels, partition.in_channels, plan.tiles()]
    };
    assert_eq!(split(&first_plan), [4, 50, 7, 1_400]);
    assert_eq!(split(&second_plan), [3, 50, 9, 1_350]);
    let [a, b] = [vertex_sums(&first), vertex_sums(&second)];
    println!("vertices, edges, work lists: {a:?} {b:?}");
    assert_eq!([a[0], b[0]], [1_400, 1_350]);
    assert_eq!(a[1] + b[1], 45_700);
    assert_eq!(a[2] + b[2], 99_000);

    let within = |what: &str, cycles: u64, profiled: f64, percent: f64| {
        println!("{what}: {cycles} cycles, profiled {profiled}");
        assert!((cycles as f64 / profiled - 1.0).abs() * 100.0 < percent, "{what}: {cycles}");
    };
    let of = |names: &[&str], starts: u64| {
        names.iter().map(|name| phase_cycles(&first, &format!("Conv_1/{name}"))).sum::<u64>()
            + starts
    };
    let convolve = ["Convolve/ExchangePre", "Convolve/PreArrange-0", "Convolve"];
    let starts = EXCHANGE_START_CYCLES + 2 * COMPUTE_START_CYCLES;
    within("Convolve", of(&convolve, starts), 15_240.0, 2.0);
    let starts = EXCHANGE_START_CYCLES + COMPUTE_START_CYCLES;
    within("Reduce0", of(&["Reduce0/ExchangePre", "Reduce0"], starts), 3_430.0, 7.0);
}
