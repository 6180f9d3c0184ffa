//! Specs that are bundled with the program.

/// The purpose of bundled specs. Lists show them by group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BundledSpecGroup {
    /// Specs that each show one feature of an IPU.
    Examples,
    /// Programs of one or two operations.
    SmallPrograms,
    /// Models with speeds that Graphcore published.
    Benchmarks,
}

impl BundledSpecGroup {
    /// All groups, in the order of lists.
    pub const ALL: [Self; 3] = [Self::Examples, Self::SmallPrograms, Self::Benchmarks];

    /// The heading of the group.
    pub fn title(self) -> &'static str {
        match self {
            Self::Examples => "Examples",
            Self::SmallPrograms => "Small programs",
            Self::Benchmarks => "Published benchmarks",
        }
    }
}

/// A spec that is compiled into the program.
#[derive(Clone, Copy, Debug)]
pub struct BundledSpecText {
    /// The name, which is accepted wherever a spec is expected.
    pub name: &'static str,
    /// The TOML text. Its first comment line describes the spec.
    pub text: &'static str,
    pub group: BundledSpecGroup,
}

impl BundledSpecText {
    /// The description in the first comment line.
    pub fn about(&self) -> &'static str {
        self.text.lines().next().unwrap_or("").trim_start_matches('#').trim()
    }
}

macro_rules! spec {
    ($name:literal, $group:ident) => {
        BundledSpecText {
            name: $name,
            group: BundledSpecGroup::$group,
            text: include_str!(concat!("../../../../assets/specs/", $name, ".toml")),
        }
    };
}

/// Every bundled spec, by group.
pub const BUNDLED_SPECS: &[BundledSpecText] = &[
    spec!("mnist_pipeline", Examples),
    spec!("data_loading", Examples),
    spec!("io_overlap", Examples),
    spec!("offload", Examples),
    spec!("prefetch", Examples),
    spec!("too_large", Examples),
    spec!("adder", SmallPrograms),
    spec!("dense_layer", SmallPrograms),
    spec!("heat_stencil", SmallPrograms),
    spec!("image_blur", SmallPrograms),
    spec!("mat_vec", SmallPrograms),
    spec!("matmul_chain", SmallPrograms),
    spec!("prearrange", SmallPrograms),
    spec!("bert_base_pod16", Benchmarks),
    spec!("bert_large_pod16", Benchmarks),
    spec!("bert_large_pod64", Benchmarks),
    spec!("bert_large_pod256", Benchmarks),
    spec!("bert_large_seq512_pod16", Benchmarks),
    spec!("gpt2_small_pod16", Benchmarks),
    spec!("resnet50_inference_c600", Benchmarks),
    spec!("resnet50_pod16", Benchmarks),
    spec!("resnet50_pod64", Benchmarks),
    spec!("vit_base_pod16", Benchmarks),
];

/// Returns the bundled spec with this name.
pub fn find_bundled_spec(name: &str) -> Option<&'static BundledSpecText> {
    BUNDLED_SPECS.iter().find(|spec| spec.name == name)
}
