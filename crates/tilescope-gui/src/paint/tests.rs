use super::*;
use egui::epaint::{ImageDelta, Mesh, Vertex};
use egui::{ColorImage, Pos2, Rect, TextureOptions, pos2};

const GROUND: Color32 = Color32::BLACK;

fn painter() -> SoftwareRenderer {
    let image = ColorImage::filled([1, 1], Color32::WHITE);
    let mut delta = TexturesDelta::default();
    delta.push(TextureId::default(), ImageDelta::full(image, TextureOptions::LINEAR));
    let mut painter = SoftwareRenderer::default();
    painter.update(&mut delta);
    painter
}

fn drawn(size: [usize; 2], meshes: Vec<(Rect, Mesh)>) -> RenderedImage {
    let primitives: Vec<_> = meshes
        .into_iter()
        .map(|(clip_rect, mesh)| ClippedPrimitive { clip_rect, primitive: Primitive::Mesh(mesh) })
        .collect();
    painter().paint(size, 1.0, GROUND, &primitives)
}

fn everywhere() -> Rect {
    Rect::from_min_max(Pos2::ZERO, pos2(100.0, 100.0))
}

fn rect_mesh(rect: Rect, colour: Color32) -> Mesh {
    let mut mesh = Mesh::default();
    mesh.add_colored_rect(rect, colour);
    mesh
}

#[test]
fn a_rectangle_covers_the_pixels_whose_centre_it_contains() {
    let rect = Rect::from_min_max(pos2(1.0, 1.0), pos2(3.0, 2.4));
    let picture = drawn([4, 4], vec![(everywhere(), rect_mesh(rect, Color32::WHITE))]);
    let painted: Vec<(usize, usize)> = (0..16)
        .map(|i| (i % 4, i / 4))
        .filter(|&(x, y)| picture.pixel(x, y) != [0, 0, 0, 255])
        .collect();
    assert_eq!(painted, [(1, 1), (2, 1)]);
}

#[test]
fn triangles_that_share_an_edge_paint_no_pixel_twice() {
    // Half transparent: a pixel painted twice would be brighter, and a missing one would be black.
    let colour = Color32::from_rgba_premultiplied(100, 100, 100, 128);
    let rect = Rect::from_min_max(pos2(0.3, 0.7), pos2(60.2, 41.9));
    let picture = drawn([61, 42], vec![(everywhere(), rect_mesh(rect, colour))]);
    for y in 1..41 {
        for x in 0..60 {
            assert_eq!(picture.pixel(x, y), [100, 100, 100, 255], "at {x},{y}");
        }
    }
}

#[test]
fn blending_is_premultiplied_and_in_gamma_space() {
    let lower = rect_mesh(everywhere(), Color32::from_rgb(200, 100, 0));
    let upper = rect_mesh(everywhere(), Color32::from_rgba_premultiplied(0, 50, 100, 51));
    let picture = drawn([2, 2], vec![(everywhere(), lower), (everywhere(), upper)]);
    assert_eq!(picture.pixel(1, 1), [160, 130, 100, 255]);
}

#[test]
fn clip_rectangles_are_rounded_to_pixels() {
    let clip = Rect::from_min_max(pos2(0.6, 0.0), pos2(2.4, 10.0));
    let picture = drawn([4, 1], vec![(clip, rect_mesh(everywhere(), Color32::WHITE))]);
    let row: Vec<u8> = (0..4).map(|x| picture.pixel(x, 0)[0]).collect();
    assert_eq!(row, [0, 255, 0, 0]);
}

#[test]
fn colours_are_interpolated_between_corners() {
    let mut mesh = Mesh::default();
    let corner = |x: f32, y: f32, v: u8| Vertex::untextured(pos2(x, y), Color32::from_gray(v));
    mesh.vertices = vec![
        corner(0.0, 0.0, 0),
        corner(4.0, 0.0, 200),
        corner(4.0, 4.0, 200),
        corner(0.0, 4.0, 0),
    ];
    mesh.indices = vec![0, 1, 2, 0, 2, 3];
    let picture = drawn([4, 4], vec![(everywhere(), mesh)]);
    for y in 0..4 {
        let row: Vec<u8> = (0..4).map(|x| picture.pixel(x, y)[0]).collect();
        assert_eq!(row, [25, 75, 125, 175]);
    }
}

#[test]
fn nearest_textures_keep_their_pixels_when_enlarged() {
    let image = ColorImage::new([2, 1], vec![Color32::RED, Color32::BLUE]);
    let id = TextureId::Managed(7);
    let mut delta = TexturesDelta::default();
    delta.push(id, ImageDelta::full(image, TextureOptions::NEAREST));
    let mut painter = SoftwareRenderer::default();
    painter.update(&mut delta);
    let mut mesh = Mesh::with_texture(id);
    let uv = Rect::from_min_max(Pos2::ZERO, pos2(1.0, 1.0));
    mesh.add_rect_with_uv(Rect::from_min_max(Pos2::ZERO, pos2(6.0, 1.0)), uv, Color32::WHITE);
    let primitive = ClippedPrimitive { clip_rect: everywhere(), primitive: Primitive::Mesh(mesh) };
    let picture = painter.paint([6, 1], 1.0, GROUND, &[primitive]);
    let reds: Vec<u8> = (0..6).map(|x| picture.pixel(x, 0)[0]).collect();
    assert_eq!(reds, [255, 255, 255, 0, 0, 0]);
}

#[test]
fn degenerate_triangles_are_skipped() {
    for bad in [f32::NAN, f32::INFINITY, 1e30] {
        let rect = Rect::from_min_max(pos2(bad, 0.0), pos2(1.0, bad));
        let mesh = rect_mesh(rect, Color32::WHITE);
        drawn([3, 3], vec![(everywhere(), mesh)]);
    }
}
