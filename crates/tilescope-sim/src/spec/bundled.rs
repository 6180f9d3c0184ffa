//! Specs that come with the program.

/// A spec compiled into the program.
#[derive(Clone, Copy, Debug)]
pub struct BundledSpecText {
    /// Name that can be used wherever a spec is asked for.
    pub name: &'static str,
    /// TOML text; its first comment line says what it is.
    pub text: &'static str,
}

impl BundledSpecText {
    /// The first comment line.
    pub fn about(&self) -> &'static str {
        self.text.lines().next().unwrap_or("").trim_start_matches('#').trim()
    }
}

macro_rules! spec {
    ($name:literal) => {
        BundledSpecText {
            name: $name,
            text: include_str!(concat!("../../../../assets/specs/", $name, ".toml")),
        }
    };
}

/// Every bundled spec, sorted by name.
pub const BUNDLED_SPECS: &[BundledSpecText] = &[
    spec!("adder"),
    spec!("bert_base_pod16"),
    spec!("bert_large_pod16"),
    spec!("bert_large_pod256"),
    spec!("bert_large_pod64"),
    spec!("bert_large_seq512_pod16"),
    spec!("data_loading"),
    spec!("dense_layer"),
    spec!("gpt2_small_pod16"),
    spec!("heat_stencil"),
    spec!("image_blur"),
    spec!("io_overlap"),
    spec!("mat_vec"),
    spec!("matmul_chain"),
    spec!("mnist_pipeline"),
    spec!("offload"),
    spec!("prearrange"),
    spec!("prefetch"),
    spec!("resnet50_inference_c600"),
    spec!("resnet50_pod16"),
    spec!("resnet50_pod64"),
    spec!("too_large"),
    spec!("vit_base_pod16"),
];

/// The bundled spec of that name.
pub fn find_bundled_spec(name: &str) -> Option<&'static BundledSpecText> {
    BUNDLED_SPECS.iter().find(|spec| spec.name == name)
}
