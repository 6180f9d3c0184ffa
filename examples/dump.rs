//! debug
use tilescope::report::*;
use tilescope::sim::{
    compile::compile,
    run,
    spec::{Spec, SpecSource},
};
struct S {
    total: std::collections::BTreeMap<String, u64>,
    last: u64,
    steps: u64,
    verbose: bool,
    progs: Vec<Program>,
}
impl run::Sink for S {
    type Error = ();
    fn step(&mut self, s: &Step) -> Result<(), ()> {
        self.steps += 1;
        for i in &s.ipus {
            self.last = self.last.max(i.to_max);
            let p = &self.progs[s.program.index()];
            *self
                .total
                .entry(format!(
                    "{} {:?} {}",
                    i.ipu,
                    p.kind,
                    if p.kind == ProgramKind::Sync { p.name.as_str() } else { "" }
                ))
                .or_default() += i.to_max - i.from_max;
            if self.verbose {
                println!(
                    "{:>9} {:>7} ipu{} {:?} {} tiles {} in {} out {} bal {:.2}",
                    i.from_max,
                    i.to_max - i.from_max,
                    i.ipu,
                    p.kind,
                    p.name,
                    i.active_tiles,
                    i.bytes_in,
                    i.bytes_out,
                    i.active_tile_balance
                );
            }
        }
        Ok(())
    }
    fn mark(&mut self, _: &Mark) -> Result<(), ()> {
        Ok(())
    }
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let src = SpecSource::find(&a[1], &a[2..]).unwrap();
    let spec = Spec::build(&src).unwrap();
    let t = std::time::Instant::now();
    let c = compile(&spec).unwrap();
    eprintln!("compile {:?}", t.elapsed());
    let mut s = S {
        total: Default::default(),
        last: 0,
        steps: 0,
        verbose: std::env::var("V").is_ok(),
        progs: c.compilation.programs.clone(),
    };
    if c.tiles_out_of_memory() == 0 {
        run::run(&c, spec.options.output_mode, &mut s).unwrap();
    }
    println!("cycles {} steps {}", s.last, s.steps);
    for (k, v) in &s.total {
        println!("{k:40} {v}");
    }
    println!("{:?}", c.compilation.graph);
    let m = &c.compilation.tile_memory;
    let sum = |f: fn(&TileMemory) -> u64| m.map(f).total();
    println!(
        "excl {} incl {} ni {} i {} ov {} always {} maxincl {}",
        sum(|t| t.excluding_gaps()),
        sum(|t| t.including_gaps),
        sum(|t| t.non_interleaved),
        sum(|t| t.interleaved),
        sum(|t| t.overflowed),
        sum(|t| t.always_live),
        m.map(|t| t.including_gaps).max()
    );
    let mut al: Vec<(u64, String)> = c
        .compilation
        .variables
        .iter()
        .filter(|v| v.lifetime.is_none())
        .map(|v| (v.tiles.map(|p| p.bytes).total(), format!("{} {:?}", v.name, v.category)))
        .collect();
    al.sort();
    al.reverse();
    for (b, n) in al.iter().take(14) {
        println!("  always {b:>10} {n}");
    }
    if std::env::var("L").is_ok() {
        for (i, l) in c.compilation.liveness.iter().enumerate() {
            println!(
                "  live {i} {:.2} MiB {}",
                l.bytes as f64 / 1048576.0,
                c.compilation.programs[l.program.index()].name
            );
        }
        for v in c.compilation.variables.iter().filter(|v| v.lifetime.is_some()) {
            println!("   var {} {:?} {}", v.name, v.lifetime, v.tiles.map(|p| p.bytes).total());
        }
    }
    println!("{:?}", c.compilation.notes);
}
