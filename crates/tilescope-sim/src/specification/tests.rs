use super::*;
use crate::spec_keys::{SpecKeyType, SpecTable};

fn spec(text: &str) -> Result<Spec, SpecError> {
    Spec::build(&SpecSource::from_text("spec.toml", text))
}

fn refusal(text: &str) -> String {
    spec(text).expect_err("the spec is wrong").to_string()
}

#[test]
fn every_bundled_spec_is_valid_and_has_a_description() {
    for bundled in BUNDLED_SPECS {
        let source = SpecSource::find(bundled.name, &[]).expect("bundled");
        let spec = Spec::build(&source).unwrap_or_else(|error| panic!("{}: {error}", bundled.name));
        assert!(bundled.about().len() > 20, "{}", bundled.name);
        let again = Spec::build(&SpecSource::from_text("again", &spec.text)).expect("printed spec");
        assert_eq!(again.effective_values, spec.effective_values, "{}", bundled.name);
    }
}

#[test]
fn every_key_accepts_its_default() {
    for key in model::MODELS.iter().flat_map(keys::for_model) {
        if key.default.is_empty() {
            continue;
        }
        let value = SpecValue::parse(&key.default).expect(&key.path);
        key.value_type.accept(&value).expect(&key.path);
        assert!(!key.about.is_empty() && !key.about.ends_with('.'), "{}", key.path);
        assert!(!key.about.contains('{') && !key.known_as().contains('{'), "{}", key.path);
        for renamed in key.renamed {
            let old = SpecValue::String(renamed.old.into());
            let new = SpecValue::String(renamed.new.into());
            assert!(
                key.value_type.accept(&old).is_err() && key.value_type.accept(&new).is_ok(),
                "{}",
                key.path
            );
        }
    }
}

/// A default has a second, written form if its text differs from the TOML form.
#[test]
fn written_defaults_equal_those_of_the_fields() {
    let silent = spec("[model]\nname = \"mnist\"\n").expect("valid");
    for key in keys::KEYS.iter().filter(|key| !key.default.is_empty()) {
        let set = format!("{}={}", key.path, key.default);
        let mut source = SpecSource::from_text("spec.toml", "[model]\nname = \"mnist\"\n");
        source.overrides = vec![set.clone()];
        // A period and a number of parts are rejected if no other key uses them.
        let Ok(said) = Spec::build(&source) else { continue };
        let read = |spec: &Spec| format!("{:?} {:?} {:?}", spec.model, spec.target, spec.options);
        assert_eq!(read(&said), read(&silent), "{set}");
    }
}

#[test]
fn every_word_of_a_key_is_a_distinct_value() {
    for key in keys::KEYS.iter() {
        let SpecKeyType::OneOf(words) = key.value_type else { continue };
        let read = words.iter().map(|word| {
            let set = BTreeMap::from([(
                key.path.to_string(),
                LocatedSpecValue {
                    value: SpecValue::String((*word).into()),
                    location: SpecLocation::NotWritten,
                },
            )]);
            let values = CheckedSpecValues {
                model: &model::MODELS[0],
                imported: None,
                set,
                warnings: Vec::new(),
            };
            let tables = (
                ModelSpec::read("model", &values),
                options::TargetSpec::read("target", &values),
                options::SpecOptions::read("options", &values),
            );
            format!("{tables:?}")
        });
        let different: std::collections::BTreeSet<String> = read.collect();
        assert_eq!(different.len(), words.len(), "{}", key.path);
    }
}

#[test]
fn a_word_of_an_earlier_version_is_accepted_with_a_warning() {
    let text = "[model]\nname = \"mnist\"\n[options]\nstash_convention = \"seed\"\n";
    let spec = spec(text).expect("still taken");
    assert_eq!(spec.options.stash_convention, StashConvention::MemoryGuide);
    assert!(spec.text.contains("stash_convention = \"memory_guide\""), "{}", spec.text);
    let warnings: Vec<String> = spec.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        ["spec.toml:4: options.stash_convention: \"seed\" has been renamed to \"memory_guide\"; \
        the next version will reject it"]
    );
}

/// The schema contains every key of every bundled spec, and its words.
#[test]
fn the_schema_knows_every_key() {
    let schema = schema();
    for key in model::MODELS.iter().flat_map(keys::for_model) {
        let property = key.path.split('.').fold(&schema, |at, name| {
            assert_eq!(at["additionalProperties"], false, "{}", key.path);
            &at["properties"][name]
        });
        let about = property["description"].as_str().expect(&key.path);
        assert!(about.contains(&*key.about), "{}: {about}", key.path);
        if let SpecKeyType::OneOf(words) = key.value_type {
            assert_eq!(
                property["enum"].as_array().map(Vec::len),
                Some(words.len()),
                "{}",
                key.path
            );
        }
    }
}

#[test]
fn errors_name_file_line_key_and_the_nearest_valid_word() {
    let cases = [
        (
            "[model]\nname = \"mnist\"\n[options]\ngradient_acumulation = 8\n",
            "spec.toml:4: options.gradient_acumulation: unknown key for model \"mnist\"; did you mean options.gradient_accumulation?",
        ),
        (
            "[model]\nname = \"mnits\"\n",
            "spec.toml:2: model.name: unknown model \"mnits\"; did you mean mnist?",
        ),
        (
            "[model]\nname = \"mnist\"\n[target]\nipus = 500\n",
            "spec.toml:4: target.ipus: expected a whole number from 1 to 256, found the number 500",
        ),
        (
            "[model]\nname = \"mnist\"\ntraining = \"yes\"\n",
            "spec.toml:3: model.training: expected true or false, found the string \"yes\"",
        ),
        (
            "[model]\nname = \"mnist\"\n[options]\nexecution = \"pipelind\"\n",
            "spec.toml:4: options.execution: expected \"pipelined\", \"sharded\" or \"phased\", found the string \"pipelind\"; did you mean \"pipelined\"?",
        ),
        (
            "[modle]\n",
            "spec.toml:1: modle: unknown table; a spec has [model], [target] and [options]; did you mean model?",
        ),
        (
            "[model]\nname = \"mnist\"\n[target]\nname = \"mk1\"\n[options]\nnum_io_tiles = 1216\n",
            "spec.toml:6: options.num_io_tiles: 1216 I/O tiles leave no compute tiles: mk1 has 1216",
        ),
    ];
    for (text, message) in cases {
        assert_eq!(refusal(text), message);
    }
    // If no key is near, the keys of the same table are listed.
    let unlike = refusal("[model]\nname = \"matmul_chain\"\nwidth = 4\n");
    assert!(unlike.contains("unknown key for model \"matmul_chain\"; known: model."), "{unlike}");
    assert!(unlike.contains("model.k") && !unlike.contains("options."), "{unlike}");
    let unlike = refusal("[model]\nname = \"matmul_chain\"\n[other]\nwidth = 4\n");
    assert!(unlike.ends_with("; known: model, target, options"), "{unlike}");
    let nameless = refusal("[model]\n");
    assert!(nameless.starts_with("model.name: missing key; expected one of "), "{nameless}");
    for model in model::MODELS {
        assert!(nameless.contains(model.name), "{nameless}");
    }
}

/// A name of PopTorch, PopART or TensorFlow for a key leads to a hint with the key.
#[test]
fn names_of_frameworks_lead_to_keys() {
    for (typed, meant) in [
        ("options.enableSyntheticData", "options.host.loader"),
        ("options.enable_synthetic_data", "options.host.loader"),
        ("options.gradientAccumulation", "options.gradient_accumulation"),
        ("options.batchesPerStep", "options.device_iterations"),
        ("options.matmul_proportion", "options.available_memory_proportion"),
        (
            "options.host.useReplicatedTensorSharding",
            "options.location.optimizer_state.replicated_tensor_sharding or \
             options.location.weights.replicated_tensor_sharding or \
             options.location.accumulators.replicated_tensor_sharding",
        ),
    ] {
        let source = SpecSource::find("mnist_pipeline", &[format!("{typed}=1")]).expect("bundled");
        let message = Spec::build(&source).expect_err("unknown").to_string();
        assert!(message.ends_with(&format!("; did you mean {meant}?")), "{message}");
    }
    // Words of a sentence are not names: a typing error is more likely.
    let source =
        SpecSource::find("mnist_pipeline", &["options.moved=1".to_owned()]).expect("bundled");
    let message = Spec::build(&source).expect_err("unknown").to_string();
    assert!(!message.contains("normalise_on_ipu?"), "{message}");
}

#[test]
fn overrides_win_and_are_checked_like_the_file() {
    let mut source =
        SpecSource::find("mnist_pipeline", &["options.gradient_accumulation=20".to_string()])
            .expect("bundled");
    assert_eq!(Spec::build(&source).expect("valid").options.gradient_accumulation, 20);
    // A value of a text key is text, regardless of its form.
    for (written, meant) in [("19", "19"), ("\"19\"", "19"), ("007", "007"), ("1e3", "1e3")] {
        source.overrides = vec![format!("model.loss_output={written}")];
        let settings = source.settings().expect("read");
        let expected = SpecValue::String(meant.to_string());
        assert_eq!(settings["model.loss_output"].value, expected, "{written}");
    }
    source.overrides = vec!["model.batchsize=2".to_string()];
    let message = Spec::build(&source).expect_err("typo").to_string();
    assert_eq!(
        message,
        "--set: model.batchsize: unknown key for model \"mnist\"; did you mean model.batch_size?"
    );
    source.overrides = vec!["nonsense".to_string()];
    let message = Spec::build(&source).expect_err("no value").to_string();
    assert!(message.contains("expected KEY=VALUE"), "{message}");
}

#[test]
fn a_missing_spec_is_reported_as_missing() {
    let message = SpecSource::find("mnist_pipelin", &[]).expect_err("no such spec").to_string();
    assert_eq!(
        message,
        "no file or bundled spec named \"mnist_pipelin\"; did you mean mnist_pipeline?"
    );
    for (beginning, meant) in [("mnist", "mnist_pipeline"), ("bert", "bert_base_pod16")] {
        let message = SpecSource::find(beginning, &[]).expect_err("no such spec").to_string();
        assert!(message.ends_with(&format!("did you mean {meant}?")), "{message}");
    }
    let message = SpecSource::find("no/such.toml", &[]).expect_err("no such file").to_string();
    assert!(message.contains("cannot read spec") && message.ends_with("no/such.toml"), "{message}");
}

#[test]
fn stages_can_be_written_in_three_ways() {
    let stages = |text: &str| {
        spec(&format!("[model]\nname = \"mnist\"\n[options]\nstages = {text}\n"))
            .expect(text)
            .options
            .stages
    };
    assert_eq!(stages("[[\"B1\"], [\"B2\"]]"), stages("[\"B1\", \"B2\"]"));
    let tables = stages("[{ blocks = [\"B1\", \"B2\"], ipu = 1 }, { blocks = \"B3\", ipu = 0 }]");
    assert_eq!((tables[0].ipu.0, tables[1].ipu.0, tables[0].blocks.len()), (1, 0, 2));
    let text = "[model]\nname = \"mnist\"\n[options]\nstages = [{ block = \"B1\" }]\n";
    assert!(refusal(text).ends_with("did you mean blocks?"), "{}", refusal(text));
}
