//! A simulation of colour vision deficiencies, for tests of palettes.

use egui::Color32;

/// The perception of linear light by people without one kind of cones, after Machado, Oliveira and
/// Fernandes (2009), table 1, severity 1.0; and by people with all of them.
const COLOUR_VISION_MATRICES: [(&str, [[f32; 3]; 3]); 4] = [
    ("all cones", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    (
        "protanopia",
        [
            [0.152_286, 1.052_583, -0.204_868],
            [0.114_503, 0.786_281, 0.099_216],
            [-0.003_882, -0.048_116, 1.051_998],
        ],
    ),
    (
        "deuteranopia",
        [
            [0.367_322, 0.860_646, -0.227_968],
            [0.280_085, 0.672_501, 0.047_413],
            [-0.011_820, 0.042_940, 0.968_881],
        ],
    ),
    (
        "tritanopia",
        [
            [1.255_528, -0.076_749, -0.178_779],
            [-0.078_411, 0.930_809, 0.147_602],
            [0.004_733, 0.691_367, 0.303_900],
        ],
    ),
];

/// A perceived colour in Oklab (Ottosson 2020), where distances are differences.
fn perceived_colour(colour: Color32, sight: &[[f32; 3]; 3]) -> [f32; 3] {
    let [r, g, b, _] = egui::Rgba::from(colour).to_array();
    let light = product(sight, [r, g, b]).map(|value| value.clamp(0.0, 1.0));
    let cones = [
        [0.412_221_46, 0.536_332_55, 0.051_445_995],
        [0.211_903_5, 0.680_699_5, 0.107_396_96],
        [0.088_302_46, 0.281_718_85, 0.629_978_7],
    ];
    let lab = [
        [0.210_454_26, 0.793_617_8, -0.004_072_047],
        [1.977_998_5, -2.428_592_2, 0.450_593_7],
        [0.025_904_037, 0.782_771_77, -0.808_675_77],
    ];
    product(&lab, product(&cones, light).map(f32::cbrt))
}

fn product(rows: &[[f32; 3]; 3], v: [f32; 3]) -> [f32; 3] {
    rows.map(|row| row[0] * v[0] + row[1] * v[1] + row[2] * v[2])
}

/// The difference of two colours for a person with all kinds of cones.
pub(crate) fn difference(a: Color32, b: Color32) -> f32 {
    let [(_, all_cones), ..] = COLOUR_VISION_MATRICES;
    let a = perceived_colour(a, &all_cones);
    let b = perceived_colour(b, &all_cones);
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f32>().sqrt()
}

/// The smallest difference between two of the colours, over all kinds of colour vision.
pub(crate) fn least_difference(colours: &[Color32]) -> f32 {
    let mut least = f32::MAX;
    for (_, sight) in COLOUR_VISION_MATRICES {
        for (at, a) in colours.iter().enumerate() {
            for b in &colours[..at] {
                let a = perceived_colour(*a, &sight);
                let b = perceived_colour(*b, &sight);
                let squares = (0..3).map(|i| (a[i] - b[i]).powi(2)).sum::<f32>();
                least = least.min(squares.sqrt());
            }
        }
    }
    least
}
