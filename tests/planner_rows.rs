//! scratch
use tilescope::sim::graph::DType;
use tilescope::sim::planner::*;
use tilescope::sim::targets::chip;

#[test]
fn gemm_memory() {
    let rows = std::fs::read_to_string("tests/data/poplar_ipumodel_ops.csv").unwrap();
    let mut sum = 0.0; let mut n = 0;
    for line in rows.lines().filter(|l| l.contains(",gemm,")) {
        let f: Vec<&str> = line.split(',').collect();
        let kv: std::collections::HashMap<&str, u64> = f[2].split(' ').map(|p| { let (k, v) = p.split_once('=').unwrap(); (k, v.parse().unwrap()) }).collect();
        let (m, k, nn) = (kv["m"], kv["k"], kv["n"]);
        let machine = Machine::whole(*chip(f[3]).unwrap());
        let t = std::time::Instant::now();
        let plan = plan(&machine, &ConvParams::matmul(DType::Half, 1, m, k, nn), &PlanOptions::new(Pass::MatMul)).unwrap();
        let ms = t.elapsed().as_millis();
        let measured: f64 = f[5].parse().unwrap();
        let p = plan.partition;
        let fl = if plan.transform.swap_operands { (nn, m) } else { (m, nn) };
        let ft = fl.0.div_ceil(p.field_parts());
        let oc = plan.vertex.out_chans_per_group; let ic = plan.vertex.in_chans_per_group;
        let ot = fl.1.div_ceil(oc).div_ceil(p.out_channels * p.out_channels_serial) * oc;
        let it = k.div_ceil(ic).div_ceil(p.in_channels * p.in_channels_serial) * ic;
        let tiles = plan.tiles();
        let mem = 2 * (m * k + k * nn + m * nn) + tiles * (2 * ft * it + 2 * it * ot + 4 * ft * ot);
        let err = (mem as f64 / measured - 1.0) * 100.0;
        sum += err.abs(); n += 1;
        println!("{} {} {ms}ms mem {err:+.1}% est {} meas {} tiles {tiles} {:?} swap {} ic {ic} oc {oc} f{:?} i{}x{} o{}x{}", f[0], f[3], plan.estimate.total_cycles, f[4], plan.vertex.method, plan.transform.swap_operands, p.field, p.in_channels, p.in_channels_serial, p.out_channels, p.out_channels_serial);
    }
    println!("mean {}", sum / n as f64);
    let machine = Machine::whole(*chip("mk2").unwrap());
    for (m, k, n) in [(800, 500, 400), (800, 400, 200)] {
        let plan = plan(&machine, &ConvParams::matmul(DType::Float, 1, m, k, n), &PlanOptions::new(Pass::MatMul)).unwrap();
        println!("{}", plan.describe());
    }
}
