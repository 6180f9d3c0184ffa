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

fn dims(s: &str) -> Vec<u64> { s.split(',').map(|v| v.parse().unwrap()).collect() }

#[test]
fn plan_times() {
    let rows = std::fs::read_to_string("tests/data/poplar_ipumodel_ops.csv").unwrap();
    let total = std::time::Instant::now();
    for line in rows.lines().filter(|l| l.contains(",conv,") || l.contains(",fc,")) {
        let (head, config, tail) = if line.contains('"') {
            let p: Vec<&str> = line.split('"').collect(); (p[0], p[1], p[2].trim_start_matches(','))
        } else { let p: Vec<&str> = line.splitn(4, ',').collect(); (&line[..p[0].len() + p[1].len() + 2], p[2], p[3]) };
        let h: Vec<&str> = head.split(',').collect();
        let f: Vec<&str> = tail.split(',').collect();
        let kv: std::collections::HashMap<&str, &str> = config.split(' ').map(|p| p.split_once('=').unwrap()).collect();
        let machine = Machine::whole(*chip(f[0]).unwrap());
        let get = |k: &str, d: u64| kv.get(k).map_or(d, |v| v.parse().unwrap());
        let t = std::time::Instant::now();
        let plans = if h[1] == "fc" {
            let dt = if kv.get("data-type") == Some(&"float") { DType::Float } else { DType::Half };
            let p = ConvParams::matmul(dt, get("num-groups", 1), get("batch-size", 1), get("input-size", 1), get("output-size", 1));
            plan_fully_connected(&machine, &p, &PlanOptions::new(Pass::FcTrainingForward)).unwrap()
        } else {
            let two = |k: &str, d: &str| { let v = dims(kv.get(k).unwrap_or(&d)); if v.len() == 1 { vec![v[0], v[0]] } else { v } };
            let field = two("field", "1"); let kernel = two("kernel-size", "1"); let stride = two("stride", "1");
            let (pl, pu) = if kv.contains_key("padding") { (two("padding", "0"), two("padding", "0")) } else { (two("padding-lower", "0"), two("padding-upper", "0")) };
            let p = ConvParams { input_type: DType::Half, output_type: DType::Half, batch: get("batch-size", 1), conv_groups: get("conv-groups", 1), in_channels: get("input-channels", 1), out_channels: get("output-channels", 1),
                dims: (0..2).map(|d| FieldDim::new(field[d], kernel[d]).padded(pl[d], pu[d]).strided(stride[d])).collect() };
            plan_convolution(&machine, &p, &PlanOptions::new(Pass::TrainingForward)).unwrap()
        };
        let ms = t.elapsed().as_millis();
        println!("{} {} {ms}ms joint {} meas {}", h[0], f[0], plans.forward.joint, f[1]);
        for p in [&plans.forward, &plans.backward, &plans.update] {
            let s = &p.partition; let e = &p.estimate; let t = &p.transform;
            println!("   {} {:?} g{} ic{} oc{} swap {} exp {:?} ocf {:?} comb {} f{:?} k{:?} b{} g{} i{}x{} o{}x{} tiles {} est {} = calc {} ex {} tr {} red {} temp {}", p.options.pass.name(), p.vertex.method, p.vertex.groups_per_group, p.vertex.in_chans_per_group, p.vertex.out_chans_per_group, t.swap_operands, t.expand_dims, t.flatten_to_channels, t.combine_groups, s.field, s.kernel, s.batch, s.groups, s.in_channels, s.in_channels_serial, s.out_channels, s.out_channels_serial, p.tiles(), e.total_cycles, e.calculate, e.exchange(), e.transform_copy+e.transform_exchange, e.reduce, e.temp_bytes);
        }
    }
    println!("total {:?}", total.elapsed());
}
