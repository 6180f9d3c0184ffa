use super::*;

fn of(spec: &str, factor: f64, operations: usize) -> ProgramSensitivity {
    let source = SpecSource::find(spec, &[]).expect("a bundled spec");
    let request = SensitivityRequest { factor, operations };
    sensitivity(&source, request, &|_, _, _| None, |_| {}).expect("it can be simulated")
}

#[test]
fn a_factor_of_one_gains_nothing() {
    let found = of("mnist_pipeline", 1.0, 3);
    let base = found.base.figures().expect("it runs");
    let same = |of: &&ResourceSensitivity| of.name != "no_sync";
    for resource in found.resources.iter().filter(same) {
        assert_eq!(resource.run.figures(), Some(base), "{}", resource.title);
    }
    for operation in &found.operations {
        assert_eq!(operation.run, *base, "{}", operation.name);
    }
}

#[test]
fn every_resource_has_a_name_and_a_title_of_its_own() {
    for (position, resource) in RESOURCES.iter().enumerate() {
        let before = &RESOURCES[..position];
        assert!(before.iter().all(|of| of.name != resource.name), "{}", resource.name);
        assert!(before.iter().all(|of| (of.title)(2.0) != (resource.title)(2.0)));
    }
}
