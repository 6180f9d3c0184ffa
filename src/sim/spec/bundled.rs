//! Specs that come with the program.

/// A spec compiled into the program.
#[derive(Clone, Copy, Debug)]
pub struct Bundled {
    /// Name that can be used wherever a spec is asked for.
    pub name: &'static str,
    /// TOML text; its first comment line says what it is.
    pub text: &'static str,
}

impl Bundled {
    /// The first comment line.
    pub fn about(&self) -> &'static str {
        self.text.lines().next().unwrap_or("").trim_start_matches('#').trim()
    }
}

/// Every bundled spec, sorted by name.
pub const BUNDLED: &[Bundled] = &[
    Bundled {
        name: "bert_base_pod16",
        text: include_str!("../../../assets/specs/bert_base_pod16.toml"),
    },
    Bundled {
        name: "bert_large_pod16",
        text: include_str!("../../../assets/specs/bert_large_pod16.toml"),
    },
    Bundled {
        name: "bert_large_pod64",
        text: include_str!("../../../assets/specs/bert_large_pod64.toml"),
    },
    Bundled {
        name: "bert_large_seq512_pod16",
        text: include_str!("../../../assets/specs/bert_large_seq512_pod16.toml"),
    },
    Bundled {
        name: "gpt2_small_pod16",
        text: include_str!("../../../assets/specs/gpt2_small_pod16.toml"),
    },
    Bundled { name: "matmul_chain", text: include_str!("../../../assets/specs/matmul_chain.toml") },
    Bundled {
        name: "mnist_pipeline",
        text: include_str!("../../../assets/specs/mnist_pipeline.toml"),
    },
    Bundled {
        name: "resnet50_inference_c600",
        text: include_str!("../../../assets/specs/resnet50_inference_c600.toml"),
    },
    Bundled {
        name: "resnet50_pod16",
        text: include_str!("../../../assets/specs/resnet50_pod16.toml"),
    },
    Bundled {
        name: "resnet50_pod64",
        text: include_str!("../../../assets/specs/resnet50_pod64.toml"),
    },
    Bundled { name: "too_large", text: include_str!("../../../assets/specs/too_large.toml") },
    Bundled {
        name: "vit_base_pod16",
        text: include_str!("../../../assets/specs/vit_base_pod16.toml"),
    },
];

/// The bundled spec of that name.
pub fn bundled(name: &str) -> Option<&'static Bundled> {
    BUNDLED.iter().find(|spec| spec.name == name)
}
